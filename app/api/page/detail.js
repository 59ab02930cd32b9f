// What is selected: a gang and why it waits, a node and what runs there, a domain and who has it.

import * as api from "./api.js";
import { amount, byId, element, fact, plural, short } from "./elements.js";
import { explained, place } from "./explanation.js";
import { gangButton, phaseOf, swatch } from "./gangs.js";
import { hint } from "./map.js";
import { domainNamed, domainOf, endOf, gangsOn, keyOf, on, pathOf, select, state, sumsOf } from "./state.js";

const MOST_GANGS = 40;
const AGAIN = 1_500; // between two questions about what is selected

let shown = "", sign = "", timer, opener;

export function begin() {
  on("selected", open);
  for (const part of ["map", "gangs"]) on(part, refresh);
  on("user", () => byId("detail").replaceChildren());
  addEventListener("keydown", (event) => { if (event.key === "Escape" && !byId("signing-in").open) select(undefined); });
}

function open() {
  const { selected } = state, is = JSON.stringify(selected ?? "");
  if (is === shown) return;
  if (selected && !shown.length) opener = document.activeElement;
  const was = shown;
  shown = selected ? is : "";
  sign = "";
  clearTimeout(timer);
  timer = undefined;
  const detail = byId("detail");
  detail.hidden = !selected;
  byId("lists").hidden = Boolean(selected);
  if (!selected) {
    if (was && opener?.isConnected) opener.focus({ preventScroll: true });
    return;
  }
  detail.replaceChildren(heading(title(selected)), element("p", { class: "quiet" }, "Asking …"));
  detail.focus({ preventScroll: true });
  load().then(() => { if (innerWidth <= 900) detail.scrollIntoView({ block: "start" }); });
}

/** Ask again, in a moment, where what is selected has changed. */
function refresh() {
  const { selected } = state;
  if (!selected || timer || signature(selected) === sign) return;
  timer = setTimeout(() => { timer = undefined; load(); }, AGAIN);
}

function signature(selected) {
  const gang = selected.kind === "gang" && state.gangs.get(keyOf(selected));
  return gang ? JSON.stringify([gang.phase, gang.reason, gang.message, gang.pods]) : String(state.map && mapSign());
}

const signs = new WeakMap();
let made = 0;
const mapSign = () => signs.get(state.map) ?? signs.set(state.map, (made += 1)).get(state.map);

async function load() {
  const { selected } = state, asked = shown, ask = { gang: ofGang, node: ofNode, domain: ofDomain }[selected.kind];
  sign = signature(selected);
  let content;
  try {
    content = await ask(selected);
  } catch (error) {
    content = [element("p", { class: "problem" }, error.message)];
  }
  if (asked !== shown) return; // something else is selected by now
  const detail = byId("detail"), hadFocus = detail.contains(document.activeElement) && document.activeElement.textContent;
  detail.replaceChildren(heading(title(selected)), ...content.filter(Boolean));
  if (hadFocus) ([...detail.querySelectorAll("button")].find((each) => each.textContent === hadFocus) ?? detail).focus({ preventScroll: true });
}

const title = (selected) => ({
  gang: () => [swatch(selected), `${selected.namespace}/${selected.name}`],
  node: () => ["Node ", selected.name],
  domain: () => [`${short(state.map.domains[selected.level].level)} `, selected.path],
})[selected.kind]();

function heading(words) {
  return element("header", { class: "bar" },
    element("button", { type: "button", click: () => select(undefined) }, "Back"),
    element("h3", {}, words));
}

async function ofGang({ namespace, name, source }) {
  const explanation = await api.get(`gangs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}/explanation`, { source });
  const { gang, best } = explanation, { pods } = gang, { map } = state;
  const nearest = best && domainNamed(map, best.domain);
  if (nearest) hint(map.nodes.slice(map.domains[nearest.level].starts[nearest.index], endOf(map, nearest.level, nearest.index)));
  return [
    element("p", {}, phaseOf(gang), element("span", { class: "quiet" },
      ` ${gang.source} · priority ${gang.priority} · ${plural(pods.declared ?? pods.there, "pod")}: ${pods.there} there, ${pods.planned} planned, ${pods.bound} bound`)),
    ...explained(explanation),
    pods.planned && gang.domains.length ? element("dl", { class: "facts" }, fact("Planned in", gang.domains.map(place))) : "",
  ];
}

async function ofNode({ name }) {
  const node = await api.get(`nodes/${encodeURIComponent(name)}`, { namespace: api.session.namespace });
  const { map } = state, at = map ? map.nodes.indexOf(name) : -1;
  const { resource } = map ?? {};
  const gangs = at >= 0 ? gangRows(map, at, at + 1) : "";
  return [
    element("p", { class: node.state ? "verdict waits" : "quiet" }, node.state ? `Takes no pods: ${node.state}` : "Takes pods."),
    at >= 0 && map.domains.length ? element("p", {}, map.domains.map((_, level) => domainButton(map, level, domainOf(map, level, at)))) : "",
    node.kept_for.length ? element("p", {}, "Kept for ", node.kept_for.map(told)) : "",
    resources(node.resources),
    gangs,
    element("h4", {}, plural(node.pods.length + node.more_pods, "pod")),
    element("ul", { class: "pods" }, node.pods.map((pod) => element("li", {},
      `${pod.namespace}/${pod.name}`.replace(/^\//, ""), element("span", { class: "quiet" },
        `${pod.gang ? ` of gang ${pod.gang}` : ""}${pod.is_reserved ? ", reserved" : ""} · ${asked(pod.amounts, resource)}`)))),
    node.more_pods ? element("p", { class: "quiet" }, `and ${plural(node.more_pods, "more pod")}`) : "",
  ];
}

/** What a pod requests: the resource that is looked at first. */
function asked(amounts, resource) {
  const names = Object.keys(amounts).filter((each) => each !== "pods").sort((a, b) => (b === resource) - (a === resource));
  return names.slice(0, 3).map((each) => `${amount(amounts[each], each)} ${each}`).join(", ") || "nothing";
}

async function ofDomain({ level, index, path }) {
  const { map } = state, first = map.domains[level].starts[index];
  if (first === undefined || pathOf(map, level, index) !== path) return [element("p", { class: "problem" }, "The topology has changed.")];
  const end = endOf(map, level, index);
  const page = await api.get("topology", { name: map.name, under: path, level: map.domains[level].level, limit: 1 });
  const sums = sumsOf(map, first, end), { total } = page;
  return [
    element("p", {}, `${plural(sums.nodes, "node")}${sums.closed ? `, ${sums.closed} of them take no pods` : ""}`),
    level ? element("p", {}, "In ", domainButton(map, level - 1, domainOf(map, level - 1, first))) : "",
    resources(total.resources),
    total.excluded.length ? element("dl", { class: "facts" },
      fact("Excluded", total.excluded.map((each) => `${plural(each.nodes, "node")}: ${each.reason} (${each.examples.join(", ")})`))) : "",
    gangRows(map, first, end),
  ];
}

const domainButton = (map, level, index) => element("button", {
  type: "button", class: "link",
  click: () => select({ kind: "domain", level, index, path: pathOf(map, level, index) }),
}, `${short(map.domains[level].level)} ${map.domains[level].names[index]}`);

function resources(amounts) {
  return element("table", {},
    element("thead", {}, element("tr", {}, ["Resource", "Capacity", "Used", "Reserved", "Free"].map((each) => element("th", { scope: "col" }, each)))),
    element("tbody", {}, amounts.map((each) => element("tr", {},
      element("th", { scope: "row" }, each.resource),
      ["capacity", "used", "reserved", "free"].map((of) => element("td", {}, amount(each[of], each.resource)))))));
}

const told = (gang) => (gang.name ? gangButton(gang) : "gangs of other namespaces");

/** Who has the resource that is looked at, in a part of the map, and how far each of them is. */
function gangRows(map, first, end) {
  const every = [...gangsOn(map, first, end)], rows = every.slice(0, MOST_GANGS);
  const gangs = rows.map(([index]) => state.gangs.get(keyOf(map.gangs[index])));
  const { used } = sumsOf(map, first, end);
  const others = used - every.reduce((sum, [, its]) => sum + its.used, 0);
  if (!rows.length && others < 1e-6) return element("p", { class: "quiet" }, `No pod here has ${map.resource}.`);
  return element("table", {},
    element("caption", {}, `Who has ${map.resource}`),
    element("thead", {}, element("tr", {}, ["Gang", "Is", "Used", "Reserved"].map((each) => element("th", { scope: "col" }, each)))),
    element("tbody", {},
      rows.map(([index, its], at) => element("tr", {},
        element("th", { scope: "row" }, told(map.gangs[index])),
        element("td", { title: gangs[at]?.message }, gangs[at]?.phase ?? ""),
        element("td", {}, amount(its.used, map.resource)),
        element("td", {}, amount(its.reserved, map.resource)))),
      others > 1e-6 ? element("tr", {}, element("th", { scope: "row" }, "other pods"), element("td", {}),
        element("td", {}, amount(others, map.resource)), element("td", {})) : "",
      every.length > rows.length ? element("tr", {}, element("td", { colspan: 4 }, `and ${every.length - rows.length} more`)) : ""));
}
