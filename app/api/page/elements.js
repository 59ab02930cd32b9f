// Elements of the page. Whatever a cluster says comes in as text nodes: no name is ever markup.

export const byId = (id) => document.getElementById(id);

/** A new element; `attributes` with a function are listeners; children are elements or text. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((each) => each != null && each !== ""));
  return made;
}

/** Changes text only where it differs, so that nothing is read out twice or loses its selection. */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/**
 * Brings the children of a list up to date: one for each item, in their order. A child stays the
 * same element as long as its key is there, so focus and scrolling survive; `make` makes it anew
 * only when `signature` changes.
 */
export function keep(parent, items, { key, signature, make }) {
  const wanted = new Map(items.map((item) => [key(item), item])), before = new Map();
  for (const child of [...parent.children]) {
    if (wanted.has(child.dataset.key)) before.set(child.dataset.key, child);
    else child.remove();
  }
  const focused = parent.contains(document.activeElement) ? document.activeElement : undefined;
  const holder = focused && [...before.values()].find((each) => each.contains(focused));
  const at = holder && [...holder.querySelectorAll("button")].indexOf(focused);
  let next = parent.firstElementChild;
  for (const [name, item] of wanted) {
    const sign = signature(item);
    let child = before.get(name);
    if (child?.dataset.sign !== sign) {
      const made = make(item);
      Object.assign(made.dataset, { key: name, sign });
      child?.replaceWith(made);
      if (child === next) next = made;
      child = made;
    }
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
    // A child that is moved or made anew loses the focus.
    if (holder?.dataset.key === name) child.querySelectorAll("button")[at]?.focus({ preventScroll: true });
  }
}

/** A term and what is said of it, unless that is nothing. */
export function fact(term, ...said) {
  const found = said.flat().filter((each) => each != null && each !== "");
  return found.length ? [element("dt", {}, term), ...found.map((each) => element("dd", {}, each))] : [];
}

export const plural = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;

/** A number of a resource in few characters: bytes in binary units, others as they are counted. */
export function amount(value, resource) {
  if (!/memory|storage|hugepages/.test(resource)) return String(Math.round(value * 100) / 100);
  const units = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
  let at = 0;
  while (Math.abs(value) >= 1024 && at < units.length - 1) { value /= 1024; at += 1; }
  return `${value >= 100 ? Math.round(value) : Math.round(value * 10) / 10}${units[at]}`;
}

export function span(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** The last word of a level's key: `cloud.provider.com/topology-rack` is "rack". */
export const short = (level) => level.replace(/^.*\//, "").replace(/^topology-/, "");
