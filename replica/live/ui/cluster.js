// The cluster at a glance: replicas, and the objects that they know.

import { byId, element, keyed, say, spelled } from "./dom.js";
import { countsOf } from "./leases.js";
import { isNone, timeOf } from "./times.js";

const STATES = { ready: ["✓", "up"], "not-voting": ["!", "not voting"], down: ["✕", "down"] };

/** A replica's state as a sign and a word. */
export function stateMark(state) {
  const [sign, word] = STATES[state];
  return element("span", { class: `state ${state}` }, element("span", { "aria-hidden": "true" }, sign), ` ${word}`);
}

/** Draw what `GET /v1/overview` answered. `choose` is called with the name of an object that the reader picks. */
export function drawOverview(overview, choose, chosen) {
  document.title = spelled(`${overview.cluster} – Quorate`);
  say(byId("cluster-name"), overview.cluster);
  say(byId("served-by"), `seen from ${overview.served_by}`);
  say(byId("replicas-sum"), summed(overview.replicas));
  keyed(byId("replica-rows"), overview.replicas, (each) => each.id, newReplica, fillReplica);
  const ids = overview.replicas.map((each) => each.id);
  keyed(byId("object-rows"), overview.objects, (each) => each.object, (each) => newObject(each, choose),
    (row, each) => fillObject(row, each, chosen, ids));
  byId("objects-table").hidden = overview.objects.length === 0;
  byId("no-objects").hidden = overview.objects.length > 0;
  const names = overview.objects.map((each) => each.object.split("/")[1]);
  keyed(byId("object-names"), [...new Set(names)], (name) => name, (name) => element("option", { value: name }), () => {});
}

function summed(replicas) {
  const up = replicas.filter((each) => each.state === "ready").length;
  const of = `${up} of ${replicas.length} replicas ${up === 1 ? "is" : "are"} up.`;
  const down = replicas.filter((each) => each.state !== "ready");
  const told = down.map((each) => `${each.id} is ${STATES[each.state][1]}: ${each.trouble}.`);
  const all = up === 1 ? "The only replica is up." : `All ${up} replicas are up.`;
  return [up === replicas.length ? all : of, ...told].join(" ");
}

function newReplica(replica) {
  const cells = ["state", "number", "catch-up", "number", "number", "number", "address"];
  return element("tr", {}, element("th", { scope: "row" }, replica.id), ...cells.map((name) => element("td", { class: name })));
}

function fillReplica(row, replica) {
  const [, state, missing, catchUp, answered, clock, votes, address] = row.children;
  row.className = replica.state;
  if (state.dataset.state !== replica.state) {
    state.dataset.state = replica.state;
    state.replaceChildren(stateMark(replica.state));
  }
  say(missing, shown(replica.missing, ""));
  say(catchUp, catchUpOf(replica.catch_up));
  say(answered, shown(replica.answered_ms, " ms"));
  say(clock, replica.clock_offset_ms === null ? "–" : `${replica.clock_offset_ms.toFixed(1)} ms`);
  say(votes, String(replica.votes));
  say(address, replica.url);
}

/** In words, how far a replica is behind each other one, and how many entries it has brought from them. */
function catchUpOf(told) {
  const others = Object.entries(told ?? {});
  if (others.length === 0) return "–";
  const behind = others.filter(([, each]) => each.lag !== 0);
  const lags = behind.map(([id, each]) => each.lag === null ? `${id}: not looked at yet` : `${id}: ${counted(each.lag, "change")} behind`);
  const brought = others.reduce((sum, [, each]) => sum + each.entries, 0);
  return [...(lags.length > 0 ? lags : ["level"]), ...(brought > 0 ? [`${counted(brought, "entry", "entries")} brought`] : [])].join("; ");
}

function counted(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

function shown(number, unit) {
  return number === null ? "–" : `${number}${unit}`;
}

function newObject(object, choose) {
  const button = element("button", { type: "button", class: "link" }, object.object);
  button.addEventListener("click", () => choose(object.object));
  const cells = ["number", "held", "time", "time", "lag"];
  return element("tr", {}, element("th", { scope: "row" }, button), ...cells.map((name) => element("td", { class: name })));
}

function fillObject(row, object, chosen, ids) {
  const [name, entries, leases, horizon, fence, lag] = row.children;
  if (object.object === chosen) name.firstChild.setAttribute("aria-current", "true");
  else name.firstChild.removeAttribute("aria-current");
  say(entries, object.is_cut ? `${object.entries} or more` : String(object.entries));
  say(leases, countsOf(object) || "–");
  say(horizon, timeOf(object.horizon));
  say(fence, timeOf(object.fence));
  say(lag, lagOf(object, ids));
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
