// The list of gangs: those that wait first, narrowed by what the reader types.

import { colourOf } from "./colours.js";
import { byId, element, keep, plural, setText, span } from "./elements.js";
import { keyOf, on, select, state } from "./state.js";

const ORDER = ["waiting", "repairing", "gathering", "placed", "binding", "running", "done"];
const AT_FIRST = 100;

let most = AT_FIRST;

export function begin() {
  on("gangs", show);
  on("selected", show);
  on("user", () => {
    most = AT_FIRST;
    for (const id of ["text", "namespace", "phase"]) byId(id).value = "";
  });
  for (const id of ["text", "namespace", "phase"]) {
    byId(id).addEventListener("input", () => { most = AT_FIRST; show(); });
  }
  byId("more").addEventListener("click", () => { most += 4 * AT_FIRST; show(); });
  byId("gang-list").addEventListener("keydown", stepped);
}

/** Arrow keys go from gang to gang. */
function stepped(event) {
  const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
  const to = step && event.target.closest("li")?.[step]?.querySelector("button");
  if (!to) return;
  to.focus();
  event.preventDefault();
}

function show() {
  const wanted = chosen();
  const phases = Map.groupBy(state.gangs.values(), (gang) => gang.phase);
  setText(byId("found"), wanted.length === state.gangs.size
    ? ORDER.filter((each) => phases.has(each)).map((each) => `${phases.get(each).length} ${each}`).join(", ") || "No gang is known."
    : `${wanted.length} of ${plural(state.gangs.size, "gang")}`);
  namespaces();
  keep(byId("gang-list"), wanted.slice(0, most), {
    key: keyOf,
    signature: (gang) => JSON.stringify([phaseText(gang), gang.reason, gang.message, gang.pods, isSelected(gang)]),
    make: row,
  });
  byId("more").hidden = wanted.length <= most;
}

function chosen() {
  const text = byId("text").value.trim().toLowerCase();
  const namespace = byId("namespace").value, phase = byId("phase").value;
  const found = [...state.gangs.values()].filter((gang) =>
    (!namespace || gang.namespace === namespace) && (!phase || gang.phase === phase) &&
    (!text || `${gang.namespace}/${gang.name} ${gang.reason} ${gang.message}`.toLowerCase().includes(text)));
  const rank = new Map(ORDER.map((each, at) => [each, at]));
  return found.sort((a, b) => rank.get(a.phase) - rank.get(b.phase) || (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** The namespaces that there are to choose from. */
function namespaces() {
  const list = byId("namespace"), names = [...new Set([...state.gangs.values()].map((gang) => gang.namespace))].sort();
  if (list.value) names.includes(list.value) || names.push(list.value);
  if (names.join() === [...list.options].slice(1).map((each) => each.value).join()) return;
  const value = list.value;
  list.replaceChildren(list.options[0], ...names.map((each) => element("option", { value: each }, each)));
  list.value = value;
}

const isSelected = (gang) => state.selected?.kind === "gang" && keyOf(state.selected) === keyOf(gang);

function row(gang) {
  const { declared, there, bound } = gang.pods, all = declared ?? there;
  return element("li", {},
    element("button", { type: "button", class: "row", "aria-pressed": String(isSelected(gang)), click: () => selectGang(gang) },
      element("span", { class: "name" }, swatch(gang), `${gang.namespace}/${gang.name}`),
      element("span", { class: "quiet" }, `${bound} of ${plural(all, "pod")}`),
      phaseOf(gang),
      isSettled(gang) ? "" : element("span", { class: "message" }, element("b", {}, gang.reason), ` ${gang.message}`)));
}

const isSettled = (gang) => gang.phase === "running" || gang.phase === "done";

/** A square in the colour that a gang has on the map. */
export function swatch(gang) {
  const made = element("span", { class: "swatch", "aria-hidden": "true" });
  made.style.background = colourOf(keyOf(gang));
  return made;
}

export const phaseOf = (gang) => element("span", { class: `phase ${gang.phase}` }, phaseText(gang));

/** The phase, and for how long the gang has waited by now. */
function phaseText({ phase, waiting_seconds: seconds, since = Date.now() }) {
  return seconds == null ? phase : `${phase} ${span(seconds + (Date.now() - since) / 1000)}`;
}

export const selectGang = ({ namespace, name, source }) => select({ kind: "gang", namespace, name, source });

/** A gang's name that leads to it. */
export function gangButton(gang) {
  return element("button", { type: "button", class: "link", click: () => selectGang(gang) }, swatch(gang), `${gang.namespace}/${gang.name}`);
}

