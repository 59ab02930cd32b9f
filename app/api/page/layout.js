// Where each domain and each node of a topology is drawn: boxes in boxes, for any number of levels.
// Nodes are cells of one size in the boxes of the narrowest level; the boxes of a wider level flow
// into rows inside it. The cells are as large as the page allows.

import { endOf, lowerBound } from "./state.js";

const LARGEST = 56, SMALLEST = 5; // pixels of a cell, with the gap beside it
const PAD = 3, LABEL = 14, BETWEEN = 4;
const NARROWEST_LABEL = 34; // pixels: a box that is narrower has no room for its name
const SMALLER = 3, FILLED = 0.85; // cells may be so many pixels smaller to fill so much of the width
const WIDE = 1.9; // how much wider than high a box is

/**
 * The boxes, a wider one before those inside it: {level, index, first, end, x, y, width, height, top}; `top` is the
 * height of its label. Those of the narrowest level, the leaves, have `columns`. `x` and `y` are the
 * corner of each node's cell, `size` is that of a cell with the gap beside it.
 */
export function layout(map, width, height) {
  const fits = (found) => found.height <= height && found.width <= width;
  let best = laidOut(map, width, SMALLEST);
  for (let low = SMALLEST + 1, high = LARGEST; low <= high;) {
    const size = (low + high) >> 1, found = laidOut(map, width, size);
    if (fits(found)) [best, low] = [found, size + 1];
    else high = size - 1;
  }
  // A little smaller is better if that leaves no empty margin.
  for (let size = best.size; size >= Math.max(SMALLEST, best.size - SMALLER); size -= 1) {
    const found = size === best.size ? best : laidOut(map, width, size);
    if (found.width >= FILLED * width) return found;
  }
  return best;
}

function laidOut(map, width, size) {
  const depth = map.domains.length;
  const labelled = map.domains.map((each, level) => level < depth - 1 || typicalWidth(map, size) >= NARROWEST_LABEL);
  const boxes = [];

  // Gives a box its size, and its children places inside it; the place of the box comes later.
  const measured = (level, index, most) => {
    const first = level < 0 ? 0 : map.domains[level].starts[index];
    const end = level < 0 ? map.nodes.length : endOf(map, level, index);
    const top = level < 0 ? 0 : labelled[level] ? LABEL : PAD;
    const pad = level < 0 ? 0 : PAD;
    const box = { level, index, first, end, top, pad, children: [] };
    if (level === depth - 1) {
      const nodes = end - first;
      box.columns = Math.max(1, Math.min(nodes, Math.ceil(Math.sqrt(nodes * WIDE)), Math.floor((most - 2 * pad) / size)));
      box.width = box.columns * size + 2 * pad;
      box.height = Math.ceil(nodes / box.columns) * size + top + pad;
      return box;
    }
    const starts = map.domains[level + 1].starts;
    for (let child = lowerBound(starts, first); child < starts.length && starts[child] < end; child += 1) {
      box.children.push(measured(level + 1, child, most - 2 * pad));
    }
    if (level < 0) flow(box, most, top, pad);
    else arrange(box, most - 2 * pad, top, pad);
    return box;
  };

  const root = measured(-1, 0, width);
  const place = (box, x, y) => {
    box.x = x;
    box.y = y;
    if (box.level >= 0 || box.columns) boxes.push(box);
    for (const child of box.children) place(child, x + child.dx, y + child.dy);
  };
  place(root, 0, 0);
  const leaves = boxes.filter((each) => each.columns);
  return { boxes, leaves, size, width: root.width, height: root.height, ...corners(map, leaves, size) };
}

/** Rows of so many children that little room is left over, and the box is about as wide as it shall be. */
function arrange(box, most, top, pad) {
  const { children } = box, average = children.reduce((sum, each) => sum + each.width + BETWEEN, 0) / children.length;
  const filled = children.reduce((sum, each) => sum + each.width * each.height, 0);
  let best = 0, least = Infinity;
  for (let row = 1; row <= children.length; row += 1) {
    const inner = Math.min(most, Math.max(row * average, children[0].width));
    flow(box, inner, top, pad);
    const shape = Math.abs(Math.log(box.width / box.height / WIDE)), cost = (box.width * box.height / filled) * (1 + 0.2 * shape);
    if (box.width <= most + 2 * pad && cost < least) [best, least] = [inner, cost];
    if (inner === most) break;
  }
  flow(box, best || most, top, pad);
}

/** Rows of children, each as high as its highest. */
function flow(box, inner, top, pad) {
  let x = 0, y = 0, row = 0, widest = 0;
  for (const child of box.children) {
    if (x > 0 && x + child.width > inner) {
      x = 0;
      y += row + BETWEEN;
      row = 0;
    }
    child.dx = x + pad;
    child.dy = y + top;
    x += child.width + BETWEEN;
    row = Math.max(row, child.height);
    widest = Math.max(widest, x - BETWEEN);
  }
  box.width = widest + 2 * pad;
  box.height = y + row + top + pad;
}

function typicalWidth(map, size) {
  const domains = map.domains.at(-1)?.starts.length ?? 1;
  const nodes = map.nodes.length / Math.max(1, domains);
  return Math.ceil(Math.sqrt(nodes * WIDE)) * size;
}

/** The box of the narrowest level that a node is in. Boxes are in the order of their nodes. */
export function boxOf(plan, node) {
  let low = 0, high = plan.leaves.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (plan.leaves[middle].first <= node) low = middle;
    else high = middle - 1;
  }
  return plan.leaves[low];
}

/** The corner of each node's cell. */
function corners(map, leaves, size) {
  const x = new Float32Array(map.nodes.length), y = new Float32Array(map.nodes.length);
  for (const box of leaves) {
    for (let node = box.first; node < box.end; node += 1) {
      const at = node - box.first;
      x[node] = box.x + box.pad + (at % box.columns) * size;
      y[node] = box.y + box.top + Math.floor(at / box.columns) * size;
    }
  }
  return { x, y };
}

/** The node at a point, or the narrowest domain there: {node} | {box} | undefined. */
export function at(plan, x, y) {
  const inside = (each) => x >= each.x && x < each.x + each.width && y >= each.y && y < each.y + each.height;
  const box = plan.boxes.findLast(inside);
  if (!box?.columns) return box && { box };
  const column = Math.floor((x - box.x - box.pad) / plan.size), row = Math.floor((y - box.y - box.top) / plan.size);
  const node = box.first + row * box.columns + column;
  const isCell = column >= 0 && column < box.columns && row >= 0 && node < box.end;
  return isCell ? { node } : { box };
}
