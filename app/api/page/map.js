// The map: one canvas, drawn anew when something of it changes. The pointer and the keys select.

import { colourOf, onScheme, shade, theme } from "./colours.js";
import { amount, byId, element, setText } from "./elements.js";
import { at, boxOf, layout } from "./layout.js";
import { endOf, gangsOn, keyOf, nameOf, on, pathOf, select, state } from "./state.js";

const canvas = byId("canvas"), readout = byId("readout");
const base = new OffscreenCanvas(1, 1); // all but what follows the pointer, which is drawn over it
let plan, frame = 0, isStale = true, cursor = -1, hovered = -1;
let marked = new Set(); // nodes that stand out: of what is selected, else those that are hinted at
let hinted = new Set(), isNarrowed = false; // the others are faint beside a gang's own

export const drawing = { milliseconds: 0, firstAt: 0 }; // of the last one, and of the page's age, for who measures it

export function begin() {
  on("map", relaid);
  on("selected", () => hint([]));
  on("user", blank);
  onScheme(() => redraw());
  new ResizeObserver(relaid).observe(byId("map"));
  byId("colour").addEventListener("change", () => { legend(); redraw(); });
  canvas.addEventListener("pointermove", (event) => hover(event));
  canvas.addEventListener("pointerleave", () => { hovered = -1; say(); redraw({ isMoved: true }); });
  canvas.addEventListener("click", clicked);
  canvas.addEventListener("keydown", pressed);
  canvas.addEventListener("focus", () => { cursor = Math.max(cursor, 0); say(); redraw({ isMoved: true }); });
  canvas.addEventListener("blur", () => redraw({ isMoved: true }));
  legend();
}

/** Have these nodes stand out where nothing that is selected does, by name. */
export function hint(names) {
  hinted = new Set(names);
  markSelected();
  redraw();
}

function markSelected() {
  const { map, selected } = state, range = (first, end) => Array.from({ length: end - first }, (_, at) => first + at);
  if (!map) return;
  const ways = {
    gang: () => {
      const index = map.gangs.findIndex((each) => keyOf(each) === keyOf(selected));
      return map.shares.node.filter((_, share) => map.shares.gang[share] === index);
    },
    node: () => [map.nodes.indexOf(selected.name)].filter((node) => node >= 0),
    domain: ({ level, index }) => range(map.domains[level]?.starts[index] ?? 0, endOf(map, level, index)),
  };
  marked = new Set(selected ? ways[selected.kind](selected) : []);
  isNarrowed = marked.size > 0 && selected.kind === "gang";
  if (!marked.size) marked = new Set(range(0, map.nodes.length).filter((node) => hinted.has(map.nodes[node])));
}

/** Show no map at all. */
function blank() {
  plan = undefined;
  cursor = hovered = -1;
  marked.clear();
  for (const each of [canvas, base]) each.width = each.height = 1;
  say();
}

function relaid() {
  const { map } = state;
  const width = byId("map").clientWidth;
  if (!map || !width) return;
  if (!map.nodes.length) return void blank(); // a picture without any height cannot be drawn
  plan = layout(map, width, Math.max(420, innerHeight * 0.88));
  const height = Math.ceil(plan.height), ratio = Math.min(devicePixelRatio || 1, 2);
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  cursor = Math.min(cursor, map.nodes.length - 1);
  markSelected();
  redraw();
}

/** Draw in the next frame: all of it, or what follows the pointer alone. */
function redraw({ isMoved = false } = {}) {
  isStale ||= !isMoved;
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    if (!plan || !state.map) return;
    const began = performance.now(), colours = theme();
    if (isStale) {
      draw(scaled(base), colours);
      drawing.milliseconds = performance.now() - began;
    }
    isStale = false;
    const pen = scaled(canvas);
    pen.drawImage(base, 0, 0, canvas.clientWidth, canvas.clientHeight);
    drawPointer(pen, colours);
    drawing.firstAt ||= performance.now();
  });
}

/** A pen that draws in pixels of the page. */
function scaled(target) {
  if (target === base && (base.width !== canvas.width || base.height !== canvas.height)) {
    Object.assign(base, { width: canvas.width, height: canvas.height });
  }
  const pen = target.getContext("2d"), ratio = canvas.width / canvas.clientWidth;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  return pen;
}

function draw(pen, colours) {
  const { map } = state;
  pen.textBaseline = "middle";
  for (const box of plan.boxes) if (box.level >= 0) drawBox(pen, colours, map, box);
  const cells = { x: plan.x, y: plan.y, size: inside() };
  const byShare = byId("colour").value === "share", hatch = hatching(pen, colours.page);
  const gangs = map.gangs.map((gang) => (gang.name ? colourOf(keyOf(gang)) : colours.quiet));
  if (!byShare) drawEmpty(pen, map, cells, colours);
  for (let node = 0, share = 0; node < map.nodes.length; node += 1) {
    const x = cells.x[node], y = cells.y[node];
    if (!map.allocatable[node] && !map.used[node]) drawLacking(pen, x, y, cells.size, colours);
    else if (byShare) drawShare(pen, map, node, x, y, cells.size);
    else share = drawGangs(pen, map, node, x, y, cells.size, { gangs, other: colours.other, hatch }, share);
    if (map.state[node]) drawClosed(pen, x, y, cells.size, colours);
  }
  if (isNarrowed) veil(pen, cells, colours);
  drawEarmarks(pen, map, gangs, colours);
  drawMarks(pen, colours);
}

/** The size of a cell without the gap beside it. */
const inside = () => plan.size - (plan.size > 8 ? 2 : 1);

/** All cells in one colour first: changing the colour for each takes most of the time. */
function drawEmpty(pen, map, { x, y, size }, colours) {
  pen.fillStyle = colours.cell;
  for (let node = 0; node < x.length; node += 1) if (map.allocatable[node] || map.used[node]) pen.fillRect(x[node], y[node], size, size);
}

/** Makes all nodes faint but those that are marked. */
function veil(pen, { x, y, size }, colours) {
  pen.globalAlpha = 0.78;
  pen.fillStyle = colours.box;
  for (let node = 0; node < x.length; node += 1) if (!marked.has(node)) pen.fillRect(x[node], y[node], size, size);
  pen.globalAlpha = 1;
}

function drawBox(pen, colours, map, box) {
  pen.fillStyle = box.columns ? colours.box : colours.outer;
  pen.strokeStyle = colours.line;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.roundRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1, 3);
  pen.fill();
  pen.stroke();
  if (box.top < 10) return;
  pen.fillStyle = box.columns ? colours.quiet : colours.text;
  pen.font = `${box.columns ? 10 : 11}px system-ui, sans-serif`;
  pen.fillText(fitting(pen, nameOf(map, box.level, box.index), box.width - 8), box.x + 4, box.y + box.top / 2 + 1);
}

/** As much of a name as there is room for: its end, which tells it from its neighbours. */
function fitting(pen, name, width) {
  if (pen.measureText(name).width <= width) return name;
  for (let from = 1; from < name.length; from += 1) {
    const text = `…${name.slice(from)}`;
    if (pen.measureText(text).width <= width) return text;
  }
  return "";
}

/** A node without any of the resource: an empty frame. */
function drawLacking(pen, x, y, size, colours) {
  pen.strokeStyle = colours.cell;
  pen.lineWidth = 1;
  pen.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
}

function drawShare(pen, map, node, x, y, size) {
  const has = map.allocatable[node];
  pen.fillStyle = shade(has ? (map.used[node] + map.reserved[node]) / has : 0);
  pen.fillRect(x, y, size, size);
}

/** A cell is filled from below: gangs, other pods, then what is reserved, hatched. */
function drawGangs(pen, map, node, x, y, size, { gangs, other, hatch }, share) {
  const { shares } = map, has = map.allocatable[node] || Infinity;
  while (shares.node[share] < node) share += 1; // of nodes that are not drawn this way
  let level = y + size, others = map.used[node], first = share;
  const fill = (taken, colour) => {
    const height = Math.min(level - y, Math.max(taken > 0 ? 1 : 0, (taken / has) * size));
    level -= height;
    pen.fillStyle = colour;
    pen.fillRect(x, level, size, height);
    return height;
  };
  for (; share < shares.node.length && shares.node[share] === node; share += 1) {
    others -= shares.used[share];
    if (shares.used[share]) fill(shares.used[share], gangs[shares.gang[share]]);
  }
  if (others > 1e-6) fill(others, other);
  let unnamed = map.reserved[node];
  for (; first < share; first += 1) {
    if (!shares.reserved[first]) continue;
    unnamed -= shares.reserved[first];
    const height = fill(shares.reserved[first], gangs[shares.gang[first]]);
    pen.fillStyle = hatch;
    pen.fillRect(x, level, size, height);
  }
  if (unnamed > 1e-6) fill(unnamed, hatch);
  return share;
}

/** Nodes that take no pods have a cross, also where their colour says something else. */
function drawClosed(pen, x, y, size, colours) {
  pen.strokeStyle = colours.closed;
  pen.lineWidth = size > 12 ? 1.5 : 1;
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(x + size, y + size);
  pen.moveTo(x + size, y);
  pen.lineTo(x, y + size);
  pen.rect(x + 0.5, y + 0.5, size - 1, size - 1);
  pen.stroke();
}

/** A corner in the colour of the gang that a node is kept for. */
function drawEarmarks(pen, map, gangs, colours) {
  const { node, gang } = map.earmarks;
  node.forEach((each, index) => {
    const x = plan.x[each], y = plan.y[each], size = Math.max(4, plan.size * 0.45);
    pen.fillStyle = gangs[gang[index]];
    pen.strokeStyle = colours.page;
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x + size, y);
    pen.lineTo(x, y + size);
    pen.closePath();
    pen.fill();
    pen.stroke();
  });
}

function drawMarks(pen, colours) {
  for (const node of marked) outline(pen, node, colours.text, 1);
}

function drawPointer(pen, colours) {
  if (hovered >= 0) outline(pen, hovered, colours.focus, 2);
  if (cursor >= 0 && document.activeElement === canvas) outline(pen, cursor, colours.focus, 3);
}

function outline(pen, node, colour, width) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.strokeRect(plan.x[node] - 0.5, plan.y[node] - 0.5, inside() + 1, inside() + 1);
}

function hatching(pen, colour) {
  const tile = new OffscreenCanvas(4, 4), inside = tile.getContext("2d");
  inside.strokeStyle = colour;
  inside.lineWidth = 1.4;
  inside.beginPath();
  for (const from of [-4, 0, 4]) {
    inside.moveTo(from, 4);
    inside.lineTo(from + 4, 0);
  }
  inside.stroke();
  return pen.createPattern(tile, "repeat");
}

// -- the pointer and the keys

function found(event) {
  const frame = canvas.getBoundingClientRect();
  return plan && at(plan, event.clientX - frame.left, event.clientY - frame.top);
}

function hover(event) {
  const over = found(event)?.node ?? -1;
  canvas.style.cursor = found(event) ? "pointer" : "";
  if (over === hovered) return;
  hovered = over;
  say();
  redraw({ isMoved: true });
}

function clicked(event) {
  const over = found(event);
  if (!over) return select(undefined);
  if (over.node !== undefined) cursor = over.node;
  if (over.node !== undefined) selectNode(over.node);
  else if (over.box.level >= 0) selectDomain(over.box);
}

const selectNode = (node) => select({ kind: "node", name: state.map.nodes[node] });

export function selectDomain({ level, index }) {
  select({ kind: "domain", level, index, path: pathOf(state.map, level, index) });
}

function pressed(event) {
  if (!plan || event.ctrlKey || event.metaKey || event.altKey) return;
  const last = state.map.nodes.length - 1, here = Math.max(cursor, 0);
  const moves = {
    ArrowLeft: () => here - 1, ArrowRight: () => here + 1, Home: () => 0, End: () => last,
    ArrowUp: () => beside(here, -1), ArrowDown: () => beside(here, 1),
    PageUp: () => boxOf(plan, Math.max(0, boxOf(plan, here).first - 1)).first,
    PageDown: () => Math.min(last, boxOf(plan, here).end),
  };
  if (event.key in moves) {
    cursor = Math.min(last, Math.max(0, moves[event.key]()));
    show(cursor);
    say();
    redraw({ isMoved: true });
  } else if (event.key === "Enter" || event.key === " ") selectNode(here);
  else if (event.key.toLowerCase() === "d" && state.map.domains.length) selectDomain(boxOf(plan, here));
  else if (event.key === "Escape") select(undefined);
  else return;
  event.preventDefault();
}

/** Scroll to a node that is out of sight. */
function show(node) {
  const y = canvas.getBoundingClientRect().top + plan.y[node];
  if (y < 0 || y > innerHeight - plan.size) scrollBy(0, y - innerHeight / 2);
}

/** The nearest node in the next row above or below, also of another box. */
function beside(node, direction) {
  let best = node, least = Infinity;
  plan.y.forEach((y, other) => {
    const down = (y - plan.y[node]) * direction, distance = down + 3 * Math.abs(plan.x[other] - plan.x[node]);
    if (down > 1 && distance < least) [best, least] = [other, distance];
  });
  return best;
}

// -- words

/** What is under the pointer, or at the cursor. */
function say() {
  const node = hovered >= 0 ? hovered : document.activeElement === canvas ? cursor : -1;
  setText(readout, node < 0 || !plan ? "" : described(state.map, node));
}

function described(map, node) {
  const where = map.domains.length ? ` in ${pathOf(map, map.domains.length - 1, boxOf(plan, node).index)}` : "";
  const { resource } = map, number = (value) => amount(value, resource);
  const reserved = map.reserved[node] ? `, ${number(map.reserved[node])} reserved` : "";
  const gangs = [...gangsOn(map, node, node + 1).keys()].map((each) => map.gangs[each]);
  const names = gangs.map((each) => (each.name ? `${each.namespace}/${each.name}` : "gangs of other namespaces"));
  const kept = map.earmarks.node.includes(node) ? "; kept for a gang" : "";
  const closed = map.state[node] ? `; ${map.states[map.state[node]]}` : "";
  return `${map.nodes[node]}${where}: ${number(map.used[node])} of ${number(map.allocatable[node])} ${resource} used${reserved}` +
    `${names.length ? `; ${names.join(", ")}` : ""}${kept}${closed}`;
}

function legend() {
  const entry = (kind, text) => element("li", {}, element("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), text);
  const byShare = byId("colour").value === "share";
  byId("legend").replaceChildren(
    ...(byShare
      ? [entry("scale", "none … all of it taken")]
      : [entry("gang", "a gang, each in a colour"), entry("other", "other pods"), entry("reserved", "reserved")]),
    entry("earmarked", "kept for a gang"), entry("closed", "takes no pods"), entry("free", "free"), entry("lacking", "has none"),
  );
}

