// The objects that replicas know, in groups by type and by the first part of their names.

import { breakable, byId, counted, element, keyed, say, spoken } from "./dom.js";
import { countsOf } from "./leases.js";
import { isNone, timeOf } from "./times.js";

const COLUMNS = 6;
const OPEN_MAX = 12; // A larger group is folded until the reader opens it.
const SEPARATOR = /[.:~@=+_-]/;

const opened = new Map(); // By group: whether the reader opened or folded it.
let draws = () => {};

/** Draw a page of objects. `choose` is called with the name of one that the reader picks, `list` with that of a queue whose dead letters it is to list. */
export function drawObjects(overview, chosen, { choose, list }) {
  draws = () => drawGroups(overview, chosen, { choose, list });
  draws();
  const names = overview.objects.map((each) => each.object.split("/")[1]);
  keyed(byId("object-names"), [...new Set(names)], (name) => name, (name) => element("option", { value: name }), () => {});
}

/** Let the reader see deleted keys, too, or not. */
export function listenToDeleted() {
  byId("show-deleted").addEventListener("change", () => draws());
}

function drawGroups(overview, chosen, actions) {
  const ids = overview.replicas.map((each) => each.id);
  keyed(byId("object-rows"), groupsOf(overview.objects), (each) => each.prefix, (each) => newGroup(each, actions),
    (body, each) => fillGroup(body, each, chosen, ids, actions));
  byId("objects-table").hidden = overview.objects.length === 0;
  byId("no-objects").hidden = overview.objects.length > 0;
}

/** The groups of some objects: a dictionary's keys, names with the same first part, and of each type the rest. */
export function groupsOf(objects) {
  const prefixes = objects.map(({ object }) => prefixOf(object));
  const groups = new Map();
  objects.forEach((object, place) => {
    const type = `${object.object.split("/")[0]}/`;
    const isShared = type === "dictionary/" || prefixes.filter((each) => each === prefixes[place]).length > 1;
    const prefix = isShared ? prefixes[place] : type;
    if (!groups.has(prefix)) groups.set(prefix, { prefix, objects: [] });
    groups.get(prefix).objects.push(object);
  });
  return [...groups.values()].sort((one, other) => (one.prefix < other.prefix ? -1 : 1));
}

function prefixOf(object) {
  const [type, name] = object.split("/");
  if (type === "dictionary") return `${type}/${name}/`;
  const end = name.search(SEPARATOR);
  return end > 0 ? `${type}/${name.slice(0, end + 1)}` : `${type}/`;
}

function isOpen({ prefix, objects }) {
  return opened.get(prefix) ?? objects.length <= OPEN_MAX;
}

function newGroup(group) {
  const button = element("button", { type: "button", class: "fold" }, element("span", { "aria-hidden": "true" }), ...breakable(group.prefix));
  button.addEventListener("click", () => {
    opened.set(group.prefix, button.getAttribute("aria-expanded") !== "true");
    draws();
  });
  // The words stay in sight while the table is scrolled sideways.
  const head = element("div", {}, button, " ", element("small", {}));
  return element("tbody", {}, element("tr", { class: "group" }, element("th", { scope: "rowgroup", colspan: COLUMNS }, head)));
}

function fillGroup(body, group, chosen, ids, actions) {
  const showsDeleted = byId("show-deleted").checked;
  const shown = group.objects.filter((each) => showsDeleted || !each.is_absent);
  const hasOpened = isOpen(group);
  const button = body.querySelector("button");
  button.setAttribute("aria-expanded", String(hasOpened));
  say(button.firstChild, hasOpened ? "▾ " : "▸ ");
  say(body.querySelector("small"), summed(group, shown, ids));
  keyed(body, hasOpened ? shown : [], (each) => each.object, (each) => newObject(each, group, actions),
    (row, each) => fillObject(row, each, chosen, ids, actions));
}

/** A group in words: how many it has, what they hold, and how many of its keys are hidden. */
function summed(group, shown, ids) {
  const noun = group.prefix.startsWith("dictionary/") ? "key" : "object";
  const total = (name) => shown.reduce((sum, each) => sum + each[name], 0);
  const lagging = shown.filter((each) => lagOf(each, ids) !== "none").length;
  const deleted = group.objects.filter((each) => each.is_absent).length;
  const hidden = group.objects.length - shown.length;
  return [
    counted(shown.length, noun),
    counted(total("entries"), "entry", "entries"),
    countsOf({ held: total("held"), waiting: total("waiting"), dead: total("dead") }),
    lagging > 0 ? `${lagging} with a lag` : "",
    hidden > 0 ? `${hidden} deleted, not shown` : deleted > 0 ? `${deleted} of them deleted` : "",
  ].filter((each) => each !== "").join(" · ");
}

function newObject(object, group, { choose }) {
  const rest = object.object.slice(group.prefix.length);
  // A listener, and who copies it, gets the whole name.
  const button = element("button", { type: "button", class: "link" }, spoken(group.prefix), ...breakable(rest));
  button.addEventListener("click", () => choose(object.object));
  const cells = ["number", "held", "lag", "time", "time"];
  return element("tr", { class: "object" }, element("th", { scope: "row" }, button), ...cells.map((name) => element("td", { class: name })));
}

function fillObject(row, object, chosen, ids, actions) {
  const [name, entries, leases, lag, horizon, fence] = row.children;
  if (object.object === chosen) name.firstChild.setAttribute("aria-current", "true");
  else name.firstChild.removeAttribute("aria-current");
  row.classList.toggle("deleted", object.is_absent);
  say(entries, object.is_absent ? "absent" : object.is_cut ? `${object.entries} or more` : String(object.entries));
  fillLeases(leases, object, actions);
  say(lag, lagOf(object, ids));
  say(horizon, timeOf(object.horizon));
  say(fence, timeOf(object.fence));
}

/** Counts of leases; that of dead letters is a button that lists them. */
function fillLeases(cell, object, { list }) {
  const words = countsOf(object) || "–";
  if (cell.textContent === words) return;
  const dead = object.dead > 0 ? countsOf({ dead: object.dead }) : "";
  cell.replaceChildren(words.slice(0, words.length - dead.length));
  if (dead === "") return;
  const button = element("button", { type: "button", class: "link", title: `List the dead letters of ${object.object}` }, dead);
  button.addEventListener("click", () => list(object.object));
  cell.append(button);
}

/** In words, which replicas lack entries or have not heard of the latest decision, and of which nobody can tell. */
function lagOf(object, ids) {
  const told = [];
  for (const id of ids) {
    const log = object.replicas[id];
    if (log === undefined) {
      told.push(`${id}: not known`);
      continue;
    }
    const parts = [];
    if (log.missing > 0) parts.push(`misses ${log.missing}`);
    if (log.horizon < object.horizon) parts.push(isNone(log.horizon) ? "no horizon yet" : "horizon behind");
    if (parts.length > 0) told.push(`${id}: ${parts.join(", ")}`);
  }
  return told.length > 0 ? told.join("; ") : "none";
}

/** The words for a list without objects. */
export function sayNoObjects(prefix) {
  say(byId("no-objects"), prefix
    ? `No object's name starts with ${prefix}.`
    : "There are no objects yet: enqueue or write something, and it appears here.");
}
