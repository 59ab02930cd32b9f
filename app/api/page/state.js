// What the page knows, and who is told when a part of it changes.

const listeners = new Map();

export const state = {
  map: undefined, // of /v1/map
  gangs: new Map(), // of /v1/events, by key
  decisions: undefined, // of /v1/decisions
  leader: undefined, // the pod that leads, if it is another one
  selected: undefined, // {kind: "gang", namespace, name, source} | {kind: "node", name} | {kind: "domain", level, index, path}
};

export const keyOf = ({ namespace, name, source }) => `${namespace}/${name}/${source}`;

export const on = (part, listener) => {
  listeners.set(part, [...(listeners.get(part) ?? []), listener]);
};

export const changed = (part) => {
  for (const each of listeners.get(part) ?? []) each();
};

/** Forget all that one user saw: what the page knows, and by "user" whatever else a part of it shows. */
export function forget() {
  select(undefined);
  Object.assign(state, { map: undefined, decisions: undefined, leader: undefined });
  state.gangs.clear();
  for (const part of ["user", "map", "gangs", "decisions"]) changed(part);
}

/** Select a gang, node or domain; undefined: nothing. */
export function select(selected) {
  state.selected = selected;
  changed("selected");
}

/** The gangs on a range of nodes: index -> {used, reserved}, the largest first. */
export function gangsOn(map, first, end) {
  const found = new Map(), { node, gang, used, reserved } = map.shares;
  for (let at = lowerBound(node, first); at < node.length && node[at] < end; at += 1) {
    const its = found.get(gang[at]) ?? { used: 0, reserved: 0 };
    its.used += used[at];
    its.reserved += reserved[at];
    found.set(gang[at], its);
  }
  return new Map([...found].sort(([, a], [, b]) => b.used + b.reserved - a.used - a.reserved));
}

export function lowerBound(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The end of a domain: the first node of the next one. */
export const endOf = (map, level, index) => map.domains[level]?.starts[index + 1] ?? map.nodes.length;

/** The domain of a level that a node is in. */
export const domainOf = (map, level, node) => lowerBound(map.domains[level].starts, node + 1) - 1;

/** The values of a domain from the widest level on, such as b1/r7. */
export function pathOf(map, level, index) {
  const first = map.domains[level].starts[index];
  return map.domains.slice(0, level + 1).map((each, at) => each.names[domainOf(map, at, first)]).join("/");
}

/** The name of a domain, without that of the one around it where it begins with that. */
export function nameOf(map, level, index) {
  const name = map.domains[level].names[index];
  if (!level) return name;
  const above = map.domains[level - 1].names[domainOf(map, level - 1, map.domains[level].starts[index])];
  return name.startsWith(above) && /^[-_./:]./.test(name.slice(above.length)) ? name.slice(above.length + 1) : name;
}

/** The domain that is meant by such as `rack=b1/r7`, as it is selected; undefined: none. */
export function domainNamed(map, text) {
  const [, key, path] = /^([^=]+)=(.*)$/.exec(text) ?? [], level = map?.domains.findIndex((each) => each.level === key) ?? -1;
  if (level < 0) return undefined;
  const index = map.domains[level].names.findIndex((name, at) => path.endsWith(name) && [name, pathOf(map, level, at)].includes(path));
  return index < 0 ? undefined : { kind: "domain", level, index, path: pathOf(map, level, index) };
}

/** Sums of a range of nodes. */
export function sumsOf(map, first, end) {
  const sums = { nodes: end - first, capacity: 0, used: 0, reserved: 0, free: 0, closed: 0 };
  for (let at = first; at < end; at += 1) {
    sums.capacity += map.allocatable[at];
    sums.used += map.used[at];
    sums.reserved += map.reserved[at];
    if (map.state[at]) sums.closed += 1;
    else sums.free += Math.max(0, map.allocatable[at] - map.used[at] - map.reserved[at]);
  }
  return sums;
}
