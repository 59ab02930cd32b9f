// The last decisions about gangs, newest first.

import { byId, element, keep } from "./elements.js";
import { gangButton } from "./gangs.js";
import { keyOf, on, state } from "./state.js";

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

export function begin() {
  on("decisions", () => {
    const list = byId("decision-list");
    if (!state.decisions) return list.replaceChildren();
    keep(list, state.decisions, {
      key: (each) => `${each.number} ${each.at}`,
      signature: () => "", // a decision does not change
      make: row,
    });
    if (!state.decisions.length) list.replaceChildren(element("li", { class: "quiet" }, "None yet."));
  });
}

function row(decision) {
  const when = new Date(decision.at * 1000);
  return element("li", { class: "decision", "data-gang": keyOf(decision) },
    element("time", { datetime: when.toISOString() }, clock.format(when)),
    element("span", { class: `phase ${decision.what}` }, decision.what.replace("-", " ")),
    gangButton(decision),
    element("p", { class: "message" }, decision.message));
}

