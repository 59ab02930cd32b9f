// The page: what follows the cluster (live.js) writes the state (state.js), and tells the parts that
// show it: map.js and table.js, gangs.js, decisions.js, detail.js. All data comes by api.js from /v1;
// elements.js is the only way into the document, and takes text for text.

import { session } from "./api.js";
import * as decisions from "./decisions.js";
import * as detail from "./detail.js";
import { byId, element, plural, setText } from "./elements.js";
import * as gangs from "./gangs.js";
import * as live from "./live.js";
import * as map from "./map.js";
import * as simulate from "./simulate.js";
import { changed, forget, on, state } from "./state.js";
import * as table from "./table.js";

for (const part of [map, table, gangs, decisions, detail, simulate]) part.begin();
tabs();
choices();
signingIn();
on("map", summarize);
on("gangs", summarize);
on("user", () => {
  problems.clear();
  Object.assign(live.question, { name: "", resource: "" });
  for (const id of ["topology-name", "resource"]) options(byId(id), [], "");
  told({ text: "Connecting …" });
});
live.begin(told);

// -- what the cluster is, on one line

function summarize() {
  const found = [], count = (...phases) => [...state.gangs.values()].filter((gang) => phases.includes(gang.phase)).length;
  if (state.map) {
    const closed = state.map.state.filter(Boolean).length;
    found.push(plural(state.map.nodes.length, "node") + (closed ? ` (${closed} closed)` : ""));
    if (state.map.unlabelled) found.push(`${plural(state.map.unlabelled, "node")} without level labels`);
  }
  if (state.map || state.gangs.size) found.push(plural(state.gangs.size, "gang"), `${count("waiting", "repairing", "gathering")} waiting`, `${count("running")} running`);
  setText(byId("summary"), found.join(" · "));
}

// -- whether it is live

const problems = new Map(); // by part

function told({ text, isLive, part, error }) {
  if (part) {
    if (error) problems.set(part, error);
    else problems.delete(part);
  }
  if (isLive || text) {
    setText(byId("status"), text ?? "Live");
    byId("status").classList.toggle("live", Boolean(isLive));
  }
  const leader = state.leader ? [`This Corral does not lead: the pod ${state.leader} does, and knows what is planned.`] : [];
  const said = [...new Set([...leader, ...[...problems.values()].map((each) => each.message)])];
  setText(byId("problem"), said.join(" "));
  byId("problem").hidden = !said.length;
  const refused = [...problems.values()].find((each) => each.asksForToken);
  byId("sign-in").hidden = !(refused || session.token);
  if (error?.status === 401 && !byId("signing-in").open) openSignIn();
}

// -- a token, where /v1 asks for one

function openSignIn() {
  setText(byId("refusal"), [...problems.values()].find((each) => each.asksForToken)?.message ?? "");
  byId("token").value = session.token;
  byId("scope").value = session.namespace;
  byId("sign-out").hidden = !session.token;
  byId("signing-in").showModal();
}

function signingIn() {
  byId("sign-in").addEventListener("click", openSignIn);
  byId("signing-in-end").addEventListener("click", () => byId("signing-in").close());
  byId("sign-out").addEventListener("click", () => signIn("", ""));
  byId("signing-in-form").addEventListener("submit", (event) => {
    event.preventDefault();
    signIn(byId("token").value.trim(), byId("scope").value.trim());
  });
}

/** Another user from now on; no token: none. Nothing of what the last user saw stays. */
function signIn(token, namespace) {
  live.end();
  session.set(token, namespace);
  byId("token").value = byId("scope").value = "";
  byId("signing-in").close();
  forget();
  live.again();
}

// -- what is looked at

function choices() {
  on("map", () => {
    if (!state.map) return;
    options(byId("topology-name"), state.map.topologies.map((each) => each.name), state.map.name);
    options(byId("resource"), state.map.resources, state.map.resource);
  });
  byId("topology-name").addEventListener("change", (event) => { live.question.name = event.target.value; live.look(); });
  byId("resource").addEventListener("change", (event) => { live.question.resource = event.target.value; live.look(); });
  byId("view").addEventListener("change", (event) => {
    byId("map").hidden = event.target.value !== "map";
    byId("table").hidden = event.target.value === "map";
    changed("map");
  });
}

function options(list, names, value) {
  list.parentElement.hidden = names.length < 2;
  if ([...list.options].map((each) => each.value).join("\n") !== names.join("\n")) {
    list.replaceChildren(...names.map((each) => element("option", { value: each }, each || "all nodes")));
  }
  if (document.activeElement !== list) list.value = value;
}

function tabs() {
  const all = [...byId("tabs").children];
  const choose = (chosen) => {
    for (const tab of all) {
      tab.setAttribute("aria-selected", String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
      byId(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
    }
  };
  for (const tab of all) tab.addEventListener("click", () => choose(tab));
  byId("tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const to = all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
    choose(to);
    to.focus();
  });
  choose(all[0]);
}
