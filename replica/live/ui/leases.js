// Leases: what this page was delivered, with what may be done about it, and how many there are, in words.

import { byId, element, keyed, say } from "./dom.js";

const HELD_MAX = 20;
const SHOWN_MAX = 200;

// What ends a lease, or lets it last longer: the endpoint, the words for it, and whether the item stays in hand.
const ENDINGS = [
  { name: "Acknowledge", path: "ack", told: "Acknowledged" },
  { name: "Release", path: "release", told: "Released" },
  { name: "Reject", path: "reject", told: "Rejected" },
  { name: "Renew", path: "renew", told: "Renewed", stays: true },
];

const held = new Map(); // By token: a lease, with the object that it is of.
let settle = () => {};

/** How many items of a queue are delivered, wait to be, and are dead letters, in words; empty where none are. */
export function countsOf({ held: out, waiting, dead }) {
  return [[out, "held"], [waiting, "waiting"], [dead, "dead"]].filter(([number]) => number > 0)
    .map(([number, word]) => `${number} ${word}`).join(", ");
}

/** How many seconds a lease shall last, as the reader chose. */
export function leaseSeconds() {
  return byId("lease-seconds").valueAsNumber;
}

/** Whether there is room for another lease in hand. */
export function hasRoom() {
  return held.size < HELD_MAX;
}

/** Take leases of an object in hand. */
export function take(object, leases) {
  for (const lease of leases) held.set(lease.token, { ...lease, object });
  draw();
}

/** A lease lasts until another time, in seconds since 1970. */
export function prolong(lease, deadline) {
  if (held.has(lease.token)) held.set(lease.token, { ...lease, deadline });
  draw();
}

/** A lease is no longer in hand. */
export function drop(lease) {
  held.delete(lease.token);
  draw();
}

/** Say what is called with an ending and a lease when the reader picks one. */
export function settleWith(action) {
  settle = action;
}

function draw() {
  const focused = document.activeElement;
  keyed(byId("leases"), [...held.values()], (lease) => lease.token, newLease, fillLease);
  byId("in-hand").hidden = held.size === 0;
  // The button that was pressed may be gone: whoever works by keyboard goes on where he was.
  if (focused !== document.body && !focused?.isConnected) {
    const acquire = byId("lease-form").hidden ? byId("value") : byId("lease-form").querySelector("button");
    (byId("leases").querySelector("button") ?? acquire).focus();
  }
}

function newLease(lease) {
  const value = lease.value.length > SHOWN_MAX ? `${lease.value.slice(0, SHOWN_MAX)}…` : lease.value;
  const buttons = ENDINGS.map((ending) => {
    const button = element("button", { type: "button", "aria-label": `${ending.name} ${value}` }, ending.name);
    button.addEventListener("click", () => settle(ending, held.get(lease.token)));
    return button;
  });
  return element("li", {}, element("code", {}, value), " ", element("small", {}),
    element("div", { class: "buttons", role: "group", "aria-label": `What to do with ${value}` }, ...buttons));
}

function fillLease(item, lease) {
  const until = new Date(Math.ceil(lease.deadline) * 1000).toISOString().slice(11, 19);
  const again = lease.deliveries > 1 ? `, delivery ${lease.deliveries}: somebody may have done part of it` : "";
  say(item.querySelector("small"), `of ${lease.object}, until ${until} UTC${again}`);
}
