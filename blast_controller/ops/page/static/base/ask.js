/** Queries to the server. Every failure is a Refused with one message for the user. */

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const AWAY = "The controller does not answer: check that it runs, and try again.";
const SECONDS = 60;

export function get(path, parameters) {
  const query = parameters ? `?${new URLSearchParams(parameters)}` : "";
  return ask(path + query, { method: "GET" });
}

export function send(method, path, body, csrf) {
  const headers = { "Content-Type": "application/json", ...(csrf ? { "X-Blast-Csrf": csrf } : {}) };
  return ask(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
}

async function ask(path, options) {
  let response;
  try {
    // The server sends errors as JSON only if the request accepts JSON.
    const headers = { ...options.headers, Accept: "application/json" };
    response = await fetch(path, { ...options, headers, signal: AbortSignal.timeout(SECONDS * 1000), cache: "no-store" });
  } catch {
    throw new Refused(AWAY, 0);
  }
  let answer;
  try {
    answer = await response.json();
  } catch {
    throw new Refused(unreadable(response.status), response.status);
  }
  if (!response.ok) throw new Refused(answer.message ?? unreadable(response.status), response.status);
  return answer;
}

function unreadable(status) {
  if (status === 404) return "The controller does not support this query: reload the page, which may be from another release.";
  return `The controller answered with status ${status} and no message: see its log.`;
}
