// What would become of objects that are pasted, by POST /v1/simulate.

import * as api from "./api.js";
import { byId, element, fact, plural } from "./elements.js";
import { explained } from "./explanation.js";
import { hint } from "./map.js";
import { on } from "./state.js";

const WORDS = { Fits: "fits", DoesNotFit: "does not fit", Waits: "waits", Invalid: "is invalid", NoGang: "is no gang" };
const MOST_PLACES = 100;

export function begin() {
  on("user", () => {
    byId("simulate-form").reset();
    byId("simulated").replaceChildren();
  });
  byId("simulate-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const send = byId("simulate-send"), result = byId("simulated");
    send.disabled = true;
    result.replaceChildren(element("p", { class: "quiet" }, "Simulating …"));
    try {
      const simulation = await api.simulate(byId("objects").value, byId("simulate-namespace").value.trim());
      result.replaceChildren(...simulation.gangs.map(shown));
      hint(simulation.gangs.flatMap((each) => each.places.map((place) => place.node)));
    } catch (error) {
      if (error.name === "AbortError") return; // another user is signed in
      result.replaceChildren(element("p", { class: "problem" }, error.message));
      hint([]);
    } finally {
      send.disabled = false;
    }
  });
}

function shown(each) {
  const fits = each.verdict === "Fits";
  return element("section", { class: "simulated" },
    element("h3", {}, `${each.objects.join(", ")} `, element("span", { class: `phase ${fits ? "running" : "waiting"}` }, WORDS[each.verdict])),
    each.explanation ? explained(each.explanation) : element("p", { class: fits ? "verdict" : "verdict waits" }, each.message),
    element("dl", { class: "facts" },
      fact("Wrong", each.errors.map((error) => `${error.field}: ${error.message}`)),
      fact("In", each.domains.map((domain) => `${domain.domain}: ${plural(domain.pods, "pod")}`)),
      fact("Notes", each.notes)),
    each.places.length ? element("details", {},
      element("summary", {}, `${plural(each.places.length, "pod")}, node by node; outlined on the map`),
      element("ul", { class: "pods" }, each.places.slice(0, MOST_PLACES).map((place) => element("li", {}, `${place.pod} → ${place.node}`)))) : "");
}
