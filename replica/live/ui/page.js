// The page as a whole: which object is looked at, when the replica is asked, and what is said when it does not answer.

import { changeToken, Failure, read, tokensFrom } from "./ask.js";
import { drawReplicas } from "./cluster.js";
import { byId, element, say } from "./dom.js";
import { Follower } from "./follow.js";
import { offer, offerEndings, operate, partsOf } from "./hand.js";
import { countLetters, lettersOf, listenToLetters, listLetters } from "./letters.js";
import { drawMembers } from "./members.js";
import { drawObjects, listenToDeleted, sayNoObjects } from "./objects.js";
import { drawChoices, unfold } from "./quorums.js";
import { hinted } from "./scroll.js";
import { timeNow } from "./times.js";
import { drawTrace, showWhole } from "./trace.js";

const TYPE = /^[a-z][a-z0-9_-]{0,31}$/; // Types of one's own have such names, too.
const ASKED_SHOWN_MAX = 80;
const OBJECTS = 50; // On a page of the list: groups are made of what is on one.

const state = { object: "queue/jobs", prefix: "", after: "", next: null, readyBefore: null, answered: "" };

const follower = new Follower(async (signal) => {
  const object = state.object;
  const entries = byId("trace-entries").value;
  const page = new URLSearchParams({ prefix: state.prefix, after: state.after, limit: OBJECTS });
  const wanted = new URLSearchParams({ object, entries });
  try {
    const [overview, trace] = await Promise.all([read(`/v1/overview?${page}`, signal), read(`/v1/trace?${wanted}`, signal)]);
    if (signal.aborted) return true;
    drawReplicas(overview);
    drawMembers(overview);
    drawObjects(overview, state.object, { choose, list });
    sayNoObjects(state.prefix);
    drawPages(overview);
    if (object === state.object) {
      drawTrace(trace);
      countLetters(trace, overview.served_by);
    }
    await drawQuorums(overview, signal);
    state.answered = timeNow();
    warn("");
    say(byId("as-of"), `${byId("pause").ariaPressed === "true" ? "Paused at" : "Live,"} ${state.answered} UTC`);
    return true;
  } catch (error) {
    if (signal.aborted) return true;
    if (!(error instanceof Failure)) throw error;
    const since = state.answered ? ` What is shown is what it said at ${state.answered} UTC.` : "";
    warn(`✕ ${error.title}. ${error.detail}${since} Asking again …`);
    say(byId("as-of"), "No answer");
    return false;
  }
});

/** The quorums change only with who is up. */
async function drawQuorums(overview, signal) {
  const ready = overview.replicas.filter((each) => each.state === "ready").map((each) => each.id).join(" ");
  if (ready === state.readyBefore) return;
  const choices = await read("/v1/choices", signal);
  if (signal.aborted) return;
  drawChoices(choices, typeOf(state.object));
  if (choices.ready.join(" ") === ready) state.readyBefore = ready;
}

function drawPages(overview) {
  state.next = overview.next;
  byId("next-page").hidden = overview.next === null;
  byId("first-page").hidden = state.after === "";
}

function warn(words) {
  const notice = byId("notice");
  notice.hidden = words === "";
  say(notice, words);
}

function typeOf(object) {
  return object.split("/")[0];
}

/** Look at another object, in all parts of the page, if its name is one. */
function choose(object) {
  const [type, name, key = ""] = partsOf(object);
  knowType(type);
  byId("object-type").value = type;
  byId("object-name").value = name;
  byId("object-key").value = key;
  return look();
}

/** Look at a queue, and list its dead letters. */
function list(object) {
  choose(object);
  byId("letters").scrollIntoView();
  byId("list-letters").focus({ preventScroll: true });
  listLetters(object);
}

/** Let the reader choose a type of one's own that was met. */
function knowType(type) {
  const known = [...byId("object-type").options].map((each) => each.value);
  if (!known.includes(type)) byId("object-type").append(element("option", { value: type }, type));
}

function look() {
  const type = byId("object-type").value;
  const name = byId("object-name").value.trim();
  const key = byId("object-key").value;
  byId("key-field").hidden = type !== "dictionary";
  byId("object-key").required = type === "dictionary";
  offer(type, run);
  if (!byId("object-form").checkValidity()) return false;
  byId("no-name").hidden = true;
  state.object = [type, name, ...(type === "dictionary" ? [key] : [])].join("/");
  say(byId("trace-object"), state.object);
  lettersOf(state.object);
  history.replaceState(null, "", `${location.pathname}?${new URLSearchParams({ object: state.object })}${location.hash}`);
  unfold(type);
  follower.now();
  return true;
}

async function run(operation) {
  if (!byId("object-form").reportValidity()) return;
  look();
  await operate(operation, state.object);
  await follower.now();
}

function listenToForms() {
  byId("object-form").addEventListener("submit", (event) => {
    event.preventDefault();
    look();
  });
  byId("object-type").addEventListener("change", look);
  for (const id of ["object-name", "object-key"]) byId(id).addEventListener("change", look);
  byId("prefix-form").addEventListener("submit", (event) => {
    event.preventDefault();
    showPage(byId("prefix").value.trim(), "");
  });
  byId("next-page").addEventListener("click", () => showPage(state.prefix, state.next ?? ""));
  byId("first-page").addEventListener("click", () => showPage(state.prefix, ""));
  byId("trace-entries").addEventListener("change", () => follower.now());
  byId("trace-whole").addEventListener("change", (event) => showWhole(event.target.checked));
  byId("give-token").addEventListener("click", askForAnotherToken);
  byId("pause").addEventListener("click", (event) => {
    const isPaused = event.target.ariaPressed !== "true";
    event.target.ariaPressed = String(isPaused);
    say(byId("as-of"), isPaused ? `Paused at ${state.answered} UTC` : "Live");
    follower.pause(isPaused);
  });
}

async function askForAnotherToken() {
  if (await changeToken()) await follower.now();
}

function showPage(prefix, after) {
  Object.assign(state, { prefix, after });
  follower.now();
}

/** Ask the reader for a token: it is given to the requests that wait, and forgotten by the field. */
function tokenFromReader(why) {
  const dialog = byId("token-dialog");
  byId("give-token").hidden = false;
  say(byId("token-why"), why);
  return new Promise((resolve) => {
    const done = (given) => {
      byId("token").value = "";
      if (dialog.open) dialog.close();
      resolve(given);
    };
    byId("token-form").onsubmit = (event) => {
      event.preventDefault();
      done(byId("token").value.trim());
    };
    byId("token-cancel").onclick = () => done("");
    dialog.oncancel = () => done("");
    dialog.showModal();
  });
}

function begin() {
  tokensFrom(tokenFromReader);
  listenToForms();
  offerEndings(() => follower.now());
  listenToLetters(() => follower.now());
  listenToDeleted();
  document.querySelectorAll(".scroll").forEach(hinted);
  const asked = new URLSearchParams(location.search).get("object");
  if (asked !== null && isLikely(asked) && choose(asked)) return;
  choose(state.object);
  if (asked !== null) sayNoName(asked);
}

/** Whether a text has the parts of an object's name; what each part may be, the form knows. */
function isLikely(asked) {
  const parts = partsOf(asked);
  return TYPE.test(parts[0]) && parts.length === (parts[0] === "dictionary" ? 3 : 2);
}

/** Say that the page's address asks for what is no object's name, and what is shown instead. */
function sayNoName(asked) {
  const shown = asked.length > ASKED_SHOWN_MAX ? `${asked.slice(0, ASKED_SHOWN_MAX)}…` : asked;
  say(byId("asked-name"), shown);
  say(byId("name-rule"), byId("object-name").title);
  say(byId("shown-instead"), state.object);
  byId("no-name").hidden = false;
}

begin();
