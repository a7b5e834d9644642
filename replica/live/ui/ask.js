// Requests to the replica that serves this page, and to nobody else. The token lives in a variable here, nowhere else.

const SECONDS_MAX = 12; // Above the deadline that the replica gives an operation.
const SENDABLE = /^[\x21-\x7e]+$/; // Of such signs alone are tokens made.

let token = "";
let asking = null;
let declined = false; // The reader had no token: only a button asks again.
let askForToken = async () => "";

/** A request that gave no answer. `definite`: it is certain that it did nothing. */
export class Failure extends Error {
  constructor(title, detail, definite, status = 0) {
    super(detail || title);
    Object.assign(this, { title, detail, definite, status });
  }
}

/** Say who asks the reader for a token: a function from a reason to the token, empty when there is none. */
export function tokensFrom(source) {
  askForToken = source;
}

/** Ask the reader for another token. */
export async function changeToken() {
  declined = false;
  return newToken("");
}

/** Hears of each answer of eventual consistency, which may be old. */
let hearsOld = () => {};

/** Whether one of the answers that `work` asks for may be old, and what it returns. */
export async function withAge(work) {
  let isOld = false;
  hearsOld = () => { isOld = true; };
  const found = await work();
  return [found, isOld];
}

/** The text that the replica answers. `body` is JSON text. Throws Failure. */
export async function ask(method, path, { body = null, signal = null } = {}) {
  for (;;) {
    const used = token;
    const answer = await send(method, path, body, signal, used);
    if (answer.status !== 401) return understood(answer);
    if (used === token && !(await newToken(used))) {
      throw new Failure("No token", "This replica asks for a token: press “Token …” to give one.", true, 401);
    }
  }
}

/** What the replica answers, read as JSON. */
export async function read(path, signal) {
  return JSON.parse(await ask("GET", path, { signal }));
}

async function newToken(refused) {
  if (declined) return false;
  asking ??= askForToken(refused === "" ? "This replica asks for a token." : "That token was refused.");
  try {
    const given = await asking;
    if (given) token = given;
    declined = given === "";
    return !declined;
  } finally {
    asking = null;
  }
}

async function send(method, path, body, signal, used) {
  // The browser would send nothing, and its error look as if the replica were down.
  if (used && !SENDABLE.test(used)) return { status: 401, text: "" };
  const headers = {};
  if (used) headers.Authorization = `Bearer ${used}`;
  if (body !== null) headers["Content-Type"] = "application/json";
  const late = AbortSignal.timeout(SECONDS_MAX * 1000);
  const signals = signal ? AbortSignal.any([signal, late]) : late;
  try {
    const response = await fetch(path, {
      method, headers, body, signal: signals, cache: "no-store", credentials: "omit", redirect: "error",
    });
    if (response.headers.get("Quorate-Consistency") === "eventual") hearsOld();
    return { status: response.status, text: await response.text() };
  } catch (error) {
    if (signal?.aborted) throw error;
    const why = late.aborted ? "did not answer in time" : "does not answer";
    throw new Failure("No answer", `The replica that serves this page ${why}.`, method === "GET");
  }
}

function understood({ status, text }) {
  if (status >= 200 && status < 300) return text;
  let problem = {};
  try {
    problem = JSON.parse(text);
  } catch {
    // Something between us and the replica answered: its words would not help.
  }
  const title = typeof problem.title === "string" ? problem.title : `HTTP status ${status}`;
  const isDefinite = problem.definite === true;
  // Where the outcome is unknown, the advice is for programs, which may repeat a request under its key.
  const words = [problem.detail, isDefinite ? problem.advice : ""].filter((each) => typeof each === "string" && each);
  throw new Failure(title, words.map(sentence).join(" "), isDefinite, status);
}

function sentence(words) {
  const begun = words[0].toUpperCase() + words.slice(1);
  return begun.endsWith(".") ? begun : `${begun}.`;
}
