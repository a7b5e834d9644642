// Operations by hand: what they ask, and what happened, in words.

import { ask, Failure, withAge } from "./ask.js";
import { byId, element, say } from "./dom.js";
import { countsOf, drop, hasRoom, leaseSeconds, prolong, settleWith, take } from "./leases.js";
import { itemsIn, leasesIn, troubleWith, valueIn } from "./raw.js";
import { timeNow } from "./times.js";

const OUTCOMES_MAX = 20;
const SHOWN_MAX = 2000;

// By type: the name of each operation, whether it takes a value, whether it changes anything, and how it runs.
const OPERATIONS = {
  queue: [
    { name: "Enqueue", takes: true, changes: true, run: async (at, value) => {
      await ask("POST", `${at}/items`, { body: `{"item":${value}}` });
      return ["Enqueued", value];
    } },
    { name: "Dequeue", changes: true, run: async (at) => {
      const items = itemsIn(await ask("POST", `${at}/dequeue`, { body: "{}" }));
      return items.length > 0 ? ["Dequeued", items[0]] : ["The queue is empty"];
    } },
    { name: "Peek", run: async (at) => {
      const items = itemsIn(await ask("GET", `${at}/peek`));
      return items.length > 0 ? ["In front", items[0]] : ["The queue is empty"];
    } },
    { name: "Count", run: async (at) => {
      const [{ size }, leases] = (await Promise.all([ask("GET", at), ask("GET", `${at}/leases`)])).map((each) => JSON.parse(each));
      const besides = countsOf(leases);
      return [`${size} ${size === 1 ? "item waits" : "items wait"}${besides && `; leases: ${besides}`}`];
    } },
  ],
  register: [
    { name: "Write", takes: true, changes: true, run: async (at, value) => {
      await ask("PUT", at, { body: `{"value":${value}}` });
      return ["Written", value];
    } },
    { name: "Read", run: async (at) => ["Read", valueIn(await ask("GET", at))] },
  ],
  dictionary: [
    { name: "Write", takes: true, changes: true, run: async (at, value) => {
      await ask("PUT", at, { body: `{"value":${value}}` });
      return ["Written", value];
    } },
    { name: "Read", run: async (at) => {
      try {
        return ["Read", valueIn(await ask("GET", at))];
      } catch (error) {
        if (error instanceof Failure && error.status === 404) return ["The key is absent"];
        throw error;
      }
    } },
    { name: "Delete", changes: true, run: async (at) => {
      await ask("DELETE", at);
      return ["Deleted"];
    } },
  ],
};

// Of a queue, by a form of its own.
const ACQUIRE = { name: "Acquire", changes: true, doubt: "What was delivered comes back when its lease is over.",
  run: async (at, _, object) => {
    if (!hasRoom()) throw new Failure("Too many in hand", "Settle some of those that were delivered to you.", true);
    const leases = leasesIn(await ask("POST", `${at}/acquire`, { body: JSON.stringify({ lease_s: leaseSeconds() }) }));
    take(object, leases);
    return leases.length > 0 ? ["Delivered", leases[0].value] : ["Nothing is there to be delivered now"];
  } };

const PATHS = { queue: "/v1/queues/", register: "/v1/registers/", dictionary: "/v1/dictionaries/" };

let offered = null; // The type whose operations the page offers.

/** Type, name and, of a dictionary, key of an object: a key may have slashes. */
export function partsOf(object) {
  const parts = object.split("/");
  return parts.length > 2 ? [...parts.slice(0, 2), parts.slice(2).join("/")] : parts;
}

/** The address of an object, as `queue/jobs` or `dictionary/users/ann`. */
export function addressOf(object) {
  const [type, name, key] = partsOf(object).map(encodeURIComponent);
  return PATHS[type] + name + (key === undefined ? "" : `/entries/${key}`);
}

/**
 * Offer the operations of a type. `run` is called with the one that the reader picks. Those of the type that is offered
 * already stay as they are: one of them may have the focus.
 */
export function offer(type, run) {
  if (type === offered) return;
  offered = type;
  const operations = OPERATIONS[type] ?? []; // Those of one's own types are called elsewhere.
  byId("value-form").hidden = operations.length === 0;
  byId("own-type").hidden = operations.length > 0;
  const buttons = operations.map((each, place) => {
    const isFirst = place === 0;
    // The first one is what Enter does in the field of the value.
    const button = element("button", { type: isFirst ? "submit" : "button", class: isFirst ? "primary" : null }, each.name);
    if (!isFirst) button.addEventListener("click", () => run(each));
    return button;
  });
  byId("operations").replaceChildren(...buttons);
  byId("value-form").onsubmit = (event) => {
    event.preventDefault();
    run(operations[0]);
  };
  byId("lease-form").hidden = type !== "queue";
  byId("lease-form").onsubmit = (event) => {
    event.preventDefault();
    run(ACQUIRE);
  };
}

/** Let the reader settle what was delivered to this page; `after` is called when something was. */
export function offerEndings(after) {
  settleWith(async (ending, lease) => {
    await alone(byId("in-hand"), () => settle(ending, lease));
    await after();
  });
}

async function settle(ending, lease) {
  const { object, token, value } = lease;
  const body = JSON.stringify({ tokens: [token], ...(ending.stays ? { lease_s: leaseSeconds() || 60 } : {}) });
  try {
    const { lost, deadline } = JSON.parse(await ask("POST", `${addressOf(object)}/${ending.path}`, { body }));
    if (lost.length > 0) {
      drop(lease);
      note("refused", "✕ Lost", `${object}: ${ending.name}. The lease was over, or settled already: nothing was done for`, value);
      return;
    }
    if (ending.stays) prolong(lease, deadline);
    else drop(lease);
    note("done", "✓ Done", `${object}: ${ending.told}`, value);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    noteFailure(error, { name: ending.name, changes: true, doubt: "Press the button again: to repeat it is harmless." }, object);
  }
}

/** Run an operation on an object, and say what happened. */
export async function operate(operation, object) {
  const field = byId("value");
  const value = field.value.trim();
  const trouble = operation.takes ? troubleWith(value) : "";
  complain(trouble);
  if (trouble) {
    field.focus();
    return;
  }
  await alone(byId(operation === ACQUIRE ? "lease-form" : "value-form"), async () => {
    try {
      const [[words, shown], isOld] = await withAge(() => operation.run(addressOf(object), value, object));
      note("done", "✓ Done", `${object}: ${words}${isOld ? " (eventual consistency: it may be old)" : ""}`, shown);
      if (operation.takes) field.select();
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      noteFailure(error, operation, object);
    }
  });
}

/** Do some work, unless work of this part of the page is under way: a button was pressed twice. */
export async function alone(part, work) {
  if (part.ariaBusy === "true") return;
  part.ariaBusy = "true";
  try {
    await work();
  } finally {
    part.ariaBusy = "false";
  }
}

function complain(trouble) {
  const help = byId("value-help");
  byId("value").setAttribute("aria-invalid", String(trouble !== ""));
  help.classList.toggle("trouble", trouble !== "");
  if (trouble) say(help, `✕ ${trouble}`);
  else help.replaceChildren("A text stands in quotes: ", element("code", {}, '"wash"'), ". Numbers, lists and objects as they are.");
}

/** Say that an operation gave no answer, and whether it happened. */
export function noteFailure(failure, operation, object) {
  const what = `${object}: ${operation.name}. ${failure.title}. ${failure.detail}`;
  if (!operation.changes) note("refused", "✕ No answer", `${what} Nothing was changed by asking.`);
  else if (failure.definite) note("refused", "✕ Did not happen", `${what} It certainly did not happen; you may try again.`);
  else {
    const doubt = operation.doubt ?? "Look at the trace before you try again: else it may happen twice.";
    note("unknown", "? Not known", `${what} Nobody knows yet whether it happened. ${doubt}`);
  }
}

/** Say what happened. */
export function note(kind, sign, words, value) {
  const shown = value === undefined ? [] : [" ", element("code", {}, value.length > SHOWN_MAX ? `${value.slice(0, SHOWN_MAX)}…` : value)];
  const list = byId("outcomes");
  list.prepend(element("li", { class: kind }, element("strong", {}, sign), " ", element("time", {}, timeNow()), " ", words, ...shown));
  while (list.children.length > OUTCOMES_MAX) list.lastChild.remove();
  byId("no-outcomes").hidden = true;
}
