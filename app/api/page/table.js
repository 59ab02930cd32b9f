// The map as a table: every domain, and the nodes of those that are opened.

import { amount, byId, element, keep, plural, short } from "./elements.js";
import { selectDomain } from "./map.js";
import { endOf, gangsOn, on, select, state, sumsOf } from "./state.js";

const COLUMNS = ["Domain", "Nodes", "Capacity", "Used", "Reserved", "Free", "Closed", "Gangs"];
const MOST_NAMED = 3;

const opened = new Set(); // first nodes of domains whose nodes are shown
let body;

export function begin() {
  body = element("tbody");
  byId("table").append(element("table", {},
    element("caption", { id: "table-caption" }),
    element("thead", {}, element("tr", {}, COLUMNS.map((each) => element("th", { scope: "col" }, each)))),
    body));
  on("map", show);
  on("user", () => {
    opened.clear();
    byId("table-caption").textContent = "";
    body.replaceChildren();
  });
}

export function show() {
  const { map } = state;
  if (!map || byId("table").hidden) return;
  byId("table-caption").textContent = `${map.resource} of ${plural(map.nodes.length, "node")}`;
  keep(body, rows(map), {
    key: (row) => row.key,
    signature: (row) => JSON.stringify([row.cells, row.isOpen]),
    make: (row) => made(map, row),
  });
}

function rows(map) {
  const found = [], deepest = map.domains.length - 1;
  map.domains.forEach(({ level, names, starts }, at) => starts.forEach((first, index) => {
    const end = endOf(map, at, index);
    found.push({ key: `${at}:${first}`, at, index, first, end, name: `${short(level)} ${names[index]}`, isLast: at === deepest });
  }));
  // A domain comes before those inside it.
  found.sort((a, b) => a.first - b.first || a.at - b.at);
  return found.flatMap((row) => {
    const isOpen = row.isLast && opened.has(row.first);
    const its = { ...row, isOpen, cells: cells(map, row.first, row.end) };
    return isOpen ? [its, ...nodes(map, row)] : [its];
  });
}

function nodes(map, row) {
  return Array.from({ length: row.end - row.first }, (_, at) => {
    const node = row.first + at;
    return { key: `node:${node}`, at: row.at + 1, node, name: map.nodes[node], cells: cells(map, node, node + 1) };
  });
}

function cells(map, first, end) {
  const sums = sumsOf(map, first, end), number = (value) => amount(value, map.resource);
  const gangs = [...gangsOn(map, first, end).keys()].map((each) => map.gangs[each].name || "others");
  const more = gangs.length > MOST_NAMED ? ` and ${gangs.length - MOST_NAMED} more` : "";
  const closed = end - first === 1 ? map.states[map.state[first]] : sums.closed || "";
  return [sums.nodes, number(sums.capacity), number(sums.used), number(sums.reserved), number(sums.free), closed,
    gangs.slice(0, MOST_NAMED).join(", ") + more];
}

function made(map, row) {
  const isNode = row.node !== undefined;
  const choose = () => (isNode ? select({ kind: "node", name: row.name }) : selectDomain({ level: row.at, index: row.index }));
  const toggle = row.isLast && element("button", {
    type: "button", class: "toggle", "aria-expanded": String(row.isOpen), "aria-label": `Nodes of ${row.name}`,
    click: () => { opened.has(row.first) ? opened.delete(row.first) : opened.add(row.first); show(); },
  }, row.isOpen ? "−" : "+");
  return element("tr", { class: `depth-${Math.min(row.at, 5)}` },
    element("th", { scope: "row" }, toggle || "", element("button", { type: "button", class: "link", click: choose }, row.name)),
    row.cells.map((each) => element("td", {}, String(each))));
}
