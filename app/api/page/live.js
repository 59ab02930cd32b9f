// Follows the cluster: gangs by the stream of events, the map and the decisions when something has
// changed, at most once a second. A hidden page asks nothing.

import * as api from "./api.js";
import { changed, keyOf, state } from "./state.js";

const SOONEST = 1_000, LATEST = 5_000; // between two maps: ordinary pods and nodes have no events
const AGES = 10_000;
const RETRY_FIRST = 1_000, RETRY_LAST = 30_000;

export const question = { name: "", resource: "" }; // of the map

let report = () => {};
let seeing; // aborts what runs while the page is seen
let isDirty = true;
let wake = () => {};
let frame = 0;

/** Begin. `tell`: what becomes of the connection, {text, isLive}, or of a part, {part, error}. */
export function begin(tell) {
  report = tell;
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  setInterval(() => document.hidden || changed("gangs"), AGES); // how long they have waited
  if (!document.hidden) start();
}

/** Ask no more. */
export const end = stop;

/** Ask anew, for another user. */
export function again() {
  stop();
  start();
}

/** Have the map asked for now, not in its turn. */
export function look() {
  isDirty = true;
  wake();
}

function start() {
  if (seeing) return;
  seeing = new AbortController();
  isDirty = true;
  followed(seeing.signal);
  polled(seeing.signal);
}

function stop() {
  seeing?.abort();
  seeing = undefined;
}

async function followed(signal) {
  for (let pause = RETRY_FIRST; !signal.aborted; pause = Math.min(pause * 2, RETRY_LAST)) {
    let why, first = new Set(), isWhole = false;
    const receive = (kind, data) => {
      if (kind === "gang") {
        const key = keyOf(data);
        if (!isWhole) first.add(key);
        state.gangs.set(key, { ...data, since: Date.now() });
      } else if (kind === "gone") {
        state.gangs.delete(keyOf(data));
      } else if (kind === "synced") {
        for (const key of state.gangs.keys()) if (!first.has(key)) state.gangs.delete(key);
        isWhole = true;
        report({ part: "gangs", error: undefined });
        pause = RETRY_FIRST;
        report({ isLive: true });
      } else if (kind === "leader") {
        state.leader = data;
      }
      gangsChanged();
    };
    try {
      why = await api.follow(api.session.namespace, signal, receive);
    } catch (error) {
      if (signal.aborted) return;
      why = error.message;
      if (error.asksForToken) return report({ part: "gangs", error });
    }
    report({ text: `Not connected: ${why}` });
    await waited(pause * (0.5 + Math.random()), signal);
  }
}

/** Tell of all changes of this moment at once. */
function gangsChanged() {
  isDirty = true;
  wake();
  if (frame) return;
  frame = requestAnimationFrame(() => {
    frame = 0;
    changed("gangs");
  });
}

async function polled(signal) {
  for (let pause = SOONEST; !signal.aborted;) {
    isDirty = false;
    const namespace = api.session.namespace;
    const isWell = await asked("map", { ...question, namespace }, signal, (map) => { state.map = map; });
    await asked("decisions", { namespace }, signal, (found) => { state.decisions = found.decisions; });
    pause = isWell ? SOONEST : Math.min(pause * 2, RETRY_LAST);
    await waited(pause, signal);
    if (isWell && !isDirty) await waited(LATEST - SOONEST, signal, true);
  }
}

/** Ask for one part, and tell of it if it is new; whether that went well. */
async function asked(part, query, signal, keep) {
  try {
    const found = await api.getIfNew(part, query);
    if (signal.aborted) return false;
    report({ part, error: undefined });
    if (found === undefined) return true;
    keep(found);
    changed(part);
    return true;
  } catch (error) {
    if (error.status === 422) question.name = question.resource = ""; // it is not there any more
    if (!signal.aborted) report({ part, error });
    return false;
  }
}

/** Wait; `mayWake`: or until something has changed. */
function waited(milliseconds, signal, mayWake = false) {
  return new Promise((done) => {
    const timer = setTimeout(end, milliseconds);
    function end() {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      wake = () => {};
      done();
    }
    signal.addEventListener("abort", end);
    if (mayWake) wake = end;
  });
}
