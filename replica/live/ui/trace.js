// The execution trace of an object, as lectures draw it: a row for each timestamp, a column for each replica.

import { byId, element, keyed, say, spoken } from "./dom.js";
import { stateMark } from "./cluster.js";
import { countsOf } from "./leases.js";
import { isNone, timeOf } from "./times.js";

const LAST = "ffffffffffffff";

/** Short names for timestamps, t1, t2 …, which stay with them while the object is followed. */
class Labels {
  constructor() {
    this.object = null;
    this.clear();
  }

  clear() {
    this.known = new Map();
    this.highest = "";
    this.count = 0;
  }

  /** Name those timestamps; a name begins anew where one turns up below those that have names. */
  learn(object, timestamps) {
    const sorted = [...new Set(timestamps)].filter((t) => !isNone(t) && !t.startsWith(LAST)).sort();
    const isLate = sorted.some((t) => t < this.highest && !this.known.has(t));
    if (object !== this.object || isLate) this.clear();
    this.object = object;
    const before = this.known;
    this.known = new Map();
    for (const t of sorted) {
      if (!before.has(t)) this.count += 1;
      this.known.set(t, before.get(t) ?? `t${this.count}`);
    }
    this.highest = [this.highest, sorted.at(-1) ?? ""].sort()[1];
  }

  of(timestamp) {
    if (isNone(timestamp)) return "0";
    return timestamp.startsWith(LAST) ? "∞" : this.known.get(timestamp);
  }
}

const labels = new Labels();
let shown = null;
let whole = false;

/** Draw what `GET /v1/trace` answered. */
export function drawTrace(trace) {
  const columns = Object.values(trace.replicas);
  const promises = columns.flatMap((each) => [each.horizon, each.fence, each.accepted, ...each.adopted]);
  labels.learn(trace.object, [...trace.rows.map((row) => row.t), ...promises.filter((t) => t !== null)]);
  const isAnother = shown?.object !== trace.object;
  const before = new Set(isAnother ? trace.rows.map((row) => row.t) : shown.rows.map((row) => row.t));
  shown = trace;
  if (isAnother) byId("trace-rows").replaceChildren();
  const ids = Object.keys(trace.replicas);
  drawHead(trace, ids);
  keyed(byId("trace-rows"), trace.rows, (row) => row.t, (row) => newRow(row, !before.has(row.t)),
    (tr, row) => fillRow(tr, row, trace, ids));
  drawFoot(trace, ids);
  say(byId("trace-note"), noteOn(trace, columns));
}

/** Show whole timestamps, or short names. */
export function showWhole(isWhole) {
  whole = isWhole;
  if (shown) drawTrace(shown);
}

function drawHead(trace, ids) {
  const head = byId("trace-head");
  const key = JSON.stringify(ids.map((id) => [id, trace.replicas[id].state]));
  if (head.dataset.key === key) return;
  head.dataset.key = key;
  const cells = ids.map((id) => {
    const { state } = trace.replicas[id];
    return element("th", { scope: "col", class: state }, id, ...(state === "ready" ? [] : [" ", stateMark(state)]));
  });
  head.replaceChildren(element("tr", {}, element("th", { scope: "col" }, "Time"), ...cells));
}

function newRow(row, isNew) {
  return element("tr", { class: isNew ? "new" : null }, element("th", { scope: "row" }));
}

function fillRow(tr, row, trace, ids) {
  const name = whole ? row.t : labels.of(row.t);
  const cells = ids.map((id) => cellOf(row, id, trace.replicas[id]));
  const key = JSON.stringify([name, cells]);
  if (tr.dataset.shown === key) return;
  tr.dataset.shown = key;
  const time = whole ? [] : [" ", element("small", {}, timeOf(row.t))];
  tr.replaceChildren(element("th", { scope: "row" }, name, ...time), ...cells.map(drawnCell));
}

/** What a replica holds in a row, and how it stands there: not known, delivered or dead, past the horizon, or none of it. */
function cellOf(row, id, column) {
  const event = row.events[id] ?? null;
  if (column.state !== "ready" || row.unseen.includes(id)) return { kind: "unknown", event: null, note: "" };
  if (event === null) return { kind: "blank", event, note: "" };
  const status = row.lease_statuses[id];
  if (status) return { kind: `status ${status.state}`, event, note: status.words };
  return row.t <= column.horizon ? { kind: "past", event, note: "below horizon" } : { kind: null, event, note: "" };
}

function drawnCell({ kind, event, note }) {
  if (kind === "unknown") return element("td", { class: kind }, element("span", { "aria-hidden": "true" }, "?"), spoken("not known"));
  if (kind === "blank") return element("td", { class: kind }, spoken("blank"));
  return element("td", { class: kind }, element("code", {}, event), ...(note ? [" ", element("small", {}, note)] : []));
}

function drawFoot(trace, ids) {
  const lines = [["horizon", (each) => named(each.horizon)], ["fence", (each) => named(each.fence)]];
  const columns = Object.values(trace.replicas);
  const isOpen = (each) => each.accepted !== null && each.accepted > each.horizon;
  if (columns.some(isOpen)) lines.push(["accepted", (each) => (isOpen(each) ? named(each.accepted) : "")]);
  if (columns.some((each) => each.adopted.length > 0)) lines.push(["adopted", (each) => each.adopted.map(named).join(" ")]);
  if (columns.some((each) => countsOf(each) !== "")) lines.push(["leases", countsOf]);
  if (columns.some((each) => each.value !== null)) lines.push(["decided", (each) => each.value ?? ""]);
  keyed(byId("trace-foot"), lines, ([title]) => title, ([title]) => element("tr", {}, element("th", { scope: "row" }, title)),
    (tr, [title, text]) => {
      while (tr.children.length > ids.length + 1) tr.lastChild.remove();
      ids.forEach((id, place) => {
        const column = trace.replicas[id];
        const cell = tr.children[place + 1] ?? tr.appendChild(element("td"));
        say(cell, column.state === "ready" ? text(column) : "?");
      });
      say(tr.firstChild, title);
    });
}

function named(timestamp) {
  return whole && !isNone(timestamp) ? timestamp : labels.of(timestamp);
}

function noteOn(trace, columns) {
  if (trace.is_cut) return "There are older entries; only the newest are shown.";
  if (trace.rows.length > 0) return "";
  const isTouched = columns.some((each) => each.fence !== null && !isNone(each.fence));
  return isTouched ? "No log holds an entry of it any more: each is collected, or kept with a decision." : "No replica holds an entry of it.";
}
