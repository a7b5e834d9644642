// The cluster at a glance: its replicas as they are now.

import { byId, counted, element, keyed, say, spelled } from "./dom.js";

const STATES = { ready: ["✓", "up"], "not-voting": ["!", "not voting"], down: ["✕", "down"] };

/** A replica's state as a sign and a word. */
export function stateMark(state) {
  const [sign, word] = STATES[state];
  return element("span", { class: `state ${state}` }, element("span", { "aria-hidden": "true" }, sign), ` ${word}`);
}

/** Draw the replicas that `GET /v1/overview` answered. */
export function drawReplicas(overview) {
  document.title = spelled(`${overview.cluster} – Quorate`);
  say(byId("cluster-name"), overview.cluster);
  say(byId("served-by"), `seen from ${overview.served_by}`);
  say(byId("replicas-sum"), summed(overview.replicas));
  keyed(byId("replica-rows"), overview.replicas, (each) => each.id, newReplica, fillReplica);
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
  const cells = ["state", "number", "catch-up", "number", "number", "address"];
  return element("tr", {}, element("th", { scope: "row" }, replica.id), ...cells.map((name) => element("td", { class: name })));
}

function fillReplica(row, replica) {
  const [, state, missing, catchUp, answered, clock, address] = row.children;
  row.className = replica.state;
  if (state.dataset.state !== replica.state) {
    state.dataset.state = replica.state;
    state.replaceChildren(stateMark(replica.state));
  }
  say(missing, shown(replica.missing, ""));
  say(catchUp, catchUpOf(replica.catch_up));
  say(answered, shown(replica.answered_ms, " ms"));
  say(clock, replica.clock_offset_ms === null ? "–" : `${replica.clock_offset_ms.toFixed(1)} ms`);
  if (address.textContent !== replica.url) address.replaceChildren(...addressOf(replica.url));
}

/** An address that is broken behind its scheme alone. */
function addressOf(url) {
  const [scheme, host] = url.split("//");
  return [`${scheme}//`, element("wbr"), host];
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

function shown(number, unit) {
  return number === null ? "–" : `${number}${unit}`;
}
