// Dead letters of a queue: listed when the reader asks, delivered again or deleted.

import { ask, Failure } from "./ask.js";
import { byId, counted, element, keyed, say } from "./dom.js";
import { addressOf, alone, note, noteFailure } from "./hand.js";
import { lettersIn } from "./raw.js";
import { timeNow } from "./times.js";

const LISTED_MAX = 50;
const SHOWN_MAX = 200;
const REASONS = { rejected: "rejected", deliveries: "too many deliveries", expired: "expired" };

// What may be done with dead letters: the endpoint, and the words for it.
const REQUEUE = { name: "Requeue", path: "requeue", told: "Requeued", changes: true };
const PURGE = { name: "Purge", path: "purge", told: "Purged", changes: true };

let shown = null; // The queue that the list is of.
let letters = [];
let after = async () => {};

/** Listen to the buttons of this part; `changed` is called when something was done. */
export function listenToLetters(changed) {
  after = changed;
  byId("list-letters").addEventListener("click", () => listLetters(shown));
  byId("requeue-letters").addEventListener("click", () => clear(REQUEUE, letters));
  byId("purge-letters").addEventListener("click", () => clear(PURGE, letters));
}

/** Show the part for a queue, and hide it for other objects; a list is of one queue. */
export function lettersOf(object) {
  for (const id of ["letters", "letters-link"]) byId(id).hidden = !object.startsWith("queue/");
  if (object === shown) return;
  shown = object;
  letters = [];
  say(byId("letters-object"), object);
  draw("");
}

/** Say how many dead letters the replica that serves the page knows of. */
export function countLetters(trace, servedBy) {
  const dead = trace.replicas[servedBy]?.dead ?? 0;
  say(byId("letters-known"), dead === 0 ? `${servedBy} knows of none.` : `${servedBy} knows of ${told(dead)}.`);
}

/** List the dead letters of a queue that is shown: a read with a quorum. */
export async function listLetters(object) {
  await alone(byId("letters"), async () => {
    try {
      const found = lettersIn(await ask("GET", `${addressOf(object)}/dead-letters`));
      if (object !== shown) return;
      letters = found.slice(0, LISTED_MAX);
      const more = found.length > LISTED_MAX ? ` Shown are the oldest ${LISTED_MAX}.` : "";
      draw(`${found.length === 0 ? "No dead letters" : told(found.length)} at ${timeNow()} UTC.${more}`);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      noteFailure(error, { name: "List dead letters" }, object);
      draw("The list did not come: see “What happened”.");
    }
  });
}

async function clear(how, chosen) {
  const object = shown;
  if (how === PURGE && !(await isSure(chosen))) return;
  await alone(byId("letters"), async () => {
    try {
      const body = JSON.stringify({ ids: chosen.map((each) => each.id) });
      const { cleared } = JSON.parse(await ask("POST", `${addressOf(object)}/dead-letters/${how.path}`, { body }));
      const gone = cleared < chosen.length ? `; ${chosen.length - cleared} were no dead letters any more` : "";
      note("done", "✓ Done", `${object}: ${how.told} ${told(cleared)}${gone}`);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      noteFailure(error, { ...how, doubt: "List the dead letters again before you repeat it." }, object);
    }
  });
  await listLetters(object);
  await after();
}

function isSure(chosen) {
  const dialog = byId("purge-dialog");
  say(byId("purge-what"), `${told(chosen.length)} of ${shown}`);
  return new Promise((resolve) => {
    dialog.returnValue = "";
    dialog.onclose = () => resolve(dialog.returnValue === "purge");
    dialog.showModal();
  });
}

function draw(words) {
  const focused = document.activeElement;
  say(byId("letters-sum"), words);
  keyed(byId("letter-rows"), letters, (each) => each.id, newLetter, () => {});
  byId("letters-all").hidden = letters.length < 2;
  // The button that was pressed may be gone: whoever works by keyboard goes on with the list.
  if (focused !== document.body && !focused?.checkVisibility()) byId("list-letters").focus();
}

function newLetter(letter) {
  const value = letter.value.length > SHOWN_MAX ? `${letter.value.slice(0, SHOWN_MAX)}…` : letter.value;
  const buttons = [REQUEUE, PURGE].map((how) => {
    const button = element("button", { type: "button", "aria-label": `${how.name} ${value}` }, how === PURGE ? "Purge …" : how.name);
    button.addEventListener("click", () => clear(how, [letter]));
    return button;
  });
  const delivered = letter.deliveries === 0 ? "never delivered" : `delivered ${letter.deliveries === 1 ? "once" : `${letter.deliveries} times`}`;
  return element("li", {}, element("code", {}, value), " ", element("small", {}, `${REASONS[letter.reason] ?? letter.reason}, ${delivered}`),
    element("div", { class: "buttons", role: "group", "aria-label": `What to do with ${value}` }, ...buttons));
}

function told(number) {
  return counted(number, "dead letter");
}
