// Why a gang waits, in the words and the order of `corral explain`.

import { amount, element, fact, plural, short, span } from "./elements.js";
import { domainNamed, select, state } from "./state.js";

const WAITS = ["gathering", "waiting", "repairing"];

/** An explanation as a list of facts; what would help comes first, as a list of its own. */
export function explained(explanation) {
  const { gang, best, blockers, excluded, relaxations, runs_on: runsOn, awaited, attempts } = explanation;
  const changes = relaxations.filter(({ kind }) => kind !== "Never"), never = relaxations.filter(({ kind }) => kind === "Never");
  const waits = WAITS.includes(gang.phase);
  return [
    element("p", { class: waits ? "verdict waits" : "verdict" }, element("b", {}, gang.reason), ` ${gang.message}`),
    changes.length ? element("section", { class: "helps" },
      element("h4", {}, "What helps"),
      element("ul", {}, changes.map((each) => element("li", {}, each.text)))) : "",
    element("dl", { class: "facts" },
      fact("Otherwise", never.map((each) => each.text)),
      explanation.fits_now ? fact("Fits now", once(gang.reason)) : [],
      fact("By now", explanation.finds_now),
      fact("Best place", best ? element("span", {}, place(best.domain || "all nodes together"), `: ${best.pods} of ${plural(best.needed, "pod")} fit`) : []),
      best?.short.length ? fact("Short", shortage(best.short)) : [],
      fact("Taken by", blockers.map((each) => `${each.who}, ${plural(each.pods, "pod")}${each.is_reserved ? " to come" : ""}`)),
      fact("Excluded", excluded.map(exclusion)),
      fact("Needs nodes", needsNodes(gang.needs_nodes, best)),
      fact("Runs on", runsOn ? places(runsOn) : []),
      fact("Awaited", awaited.map((each) => `pod ${each}`)),
      fact("To do", explanation.advice),
      fact("Next try", waits ? `when ${explanation.tries_again}${pause(explanation.retry_seconds)}` : ""),
      fact("Tried", attempts.map(attempt))),
  ];
}

/** A domain, which leads to it on the map where it is there. */
export function place(text) {
  const found = domainNamed(state.map, text);
  if (!found) return text;
  return element("button", { type: "button", class: "link", click: () => select(found) }, `${short(state.map.domains[found.level].level)} ${found.path}`);
}

function places({ domains, more_domains: more, nodes, examples }) {
  const beyond = more ? [`and ${plural(more, "more domain")}`] : [];
  return [...domains.map(place), ...beyond, `${plural(nodes, "node")}: ${listed(examples, nodes)}`];
}

function shortage(short) {
  return element("table", {},
    element("thead", {}, element("tr", {}, ["Resource", "Free there", "Requested"].map((each) => element("th", { scope: "col" }, each)))),
    element("tbody", {}, short.map((each) => element("tr", {},
      element("th", { scope: "row" }, each.resource),
      element("td", {}, amount(each.free, each.resource)),
      element("td", {}, amount(each.requested, each.resource))))));
}

const listed = (names, all) => names.join(", ") + (all > names.length ? ", …" : "");

function exclusion({ reason, nodes, examples }) {
  return `${plural(nodes, "node")}: ${reason}${examples.length ? ` (${listed(examples, nodes)})` : ""}`;
}

function needsNodes(needs, best) {
  const found = [];
  if (best?.more_nodes) {
    const where = needs?.level ? ` in one ${short(needs.level)}` : "";
    found.push(`${plural(best.more_nodes, "more node")}${where} would do, each as large as the largest there is`);
  }
  if (!needs) return found;
  const how = needs.ask === "request" ? `by ProvisioningRequest ${needs.request}` : "by marks on pods";
  found.push(`asked of node autoscalers for ${span(needs.since_seconds)}, ${how}`, needs.message);
  if (needs.reason === "fragmented") found.push("they will make none: the pods fit on free nodes, but not together");
  if (needs.reason === "gradual") found.push("they will make none: the pods that exist fit on free nodes");
  return found;
}

function once(reason) {
  if (reason === "RefusedByScheduler") return "yes: Corral plans it once kube-scheduler brings the pods that it awaits";
  if (reason === "NamespaceBudget") return "yes: Corral plans it once its namespace may hold the places of pods to come";
  if (reason === "Quota") return "yes: Corral plans it once the quota leaves enough for pods to come";
  if (reason === "BackingOff") return "yes: Corral plans it when its pause is over";
  return "yes: Corral plans it in its next turn";
}

function attempt({ last_seconds_ago: ago, times, message }) {
  return `${span(ago)} ago${times === 1 ? "" : `, ${times} times`}: ${message}`;
}

const pause = (seconds) => (seconds == null ? "" : `, not before ${span(seconds)} from now`);
