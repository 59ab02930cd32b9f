// Asks /v1, as any other client. The token stays in this tab. What is asked for one user ends with
// that user: an answer that comes later is dropped.

const BASE = new URL("../v1/", document.baseURI);
const SILENT_MILLISECONDS = 45_000; // the stream says something every 15 s

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }

  /** Whether another token or namespace may help. */
  get asksForToken() { return this.status === 401 || this.status === 403; }
}

export const session = {
  get token() { return sessionStorage.getItem("corral-token") ?? ""; },
  get namespace() { return sessionStorage.getItem("corral-namespace") ?? ""; },
  set(token, namespace) {
    sessionStorage.setItem("corral-token", token);
    sessionStorage.setItem("corral-namespace", namespace);
    user.abort();
    user = new AbortController();
    tags.clear();
  },
};

let user = new AbortController(); // ends all that is asked for who is signed in
const tags = new Map(); // by path: what was asked last, and the tag of its answer

function request(path, query, options) {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(query)) if (value !== "") url.searchParams.set(name, value);
  const headers = { ...options.headers };
  if (session.token) headers.Authorization = `Bearer ${session.token}`;
  const signal = AbortSignal.any([user.signal, ...(options.signal ? [options.signal] : [])]);
  return fetch(url, { ...options, headers, signal, cache: "no-store", credentials: "omit" });
}

async function refusal(answer) {
  const text = await answer.text();
  try {
    const { detail } = JSON.parse(text);
    const said = typeof detail === "string" ? detail : detail?.message ?? JSON.stringify(detail);
    return new Refused(answer.status, said);
  } catch {
    return new Refused(answer.status, text.slice(0, 500) || answer.statusText);
  }
}

/** What /v1 answers. Throws: Refused. */
export async function get(path, query = {}) {
  const answer = await request(path, query, {});
  if (!answer.ok) throw await refusal(answer);
  return answer.json();
}

/** The same; undefined where it is what was answered to the same question last time. Throws: Refused. */
export async function getIfNew(path, query = {}) {
  const asked = new URLSearchParams(query).toString(), known = tags.get(path);
  const headers = known?.asked === asked ? { "If-None-Match": known.tag } : {};
  const answer = await request(path, query, { headers });
  if (answer.status === 304) return undefined;
  if (!answer.ok) throw await refusal(answer);
  const found = await answer.json();
  tags.set(path, { asked, tag: answer.headers.get("ETag") });
  return found;
}

export async function simulate(body, namespace) {
  const answer = await request("simulate", { namespace }, { method: "POST", body });
  if (!answer.ok) throw await refusal(answer);
  return answer.json();
}

/** Hands over each event of /v1/events until the stream ends; returns why. Throws: Refused. */
export async function follow(namespace, signal, receive) {
  const silence = new AbortController();
  const both = AbortSignal.any([signal, silence.signal]);
  const answer = await request("events", { namespace }, { signal: both });
  if (!answer.ok) throw await refusal(answer);
  receive("leader", answer.headers.get("Corral-Leader") ?? "");
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", why = "the connection was closed";
  for (;;) {
    const timer = setTimeout(() => silence.abort(new Error("the stream is silent")), SILENT_MILLISECONDS);
    const { done, value } = await reader.read().finally(() => clearTimeout(timer));
    if (done) return why;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const each of events) {
      const found = /^event: (\w+)\ndata: (.*)$/s.exec(each);
      if (!found) continue; // a comment, to keep the connection
      const data = JSON.parse(found[2]);
      if (found[1] === "end") why = data.reason;
      receive(found[1], data);
    }
  }
}
