// The members of the cluster, and what changes: configurations, standing rules.

import { byId, element, keyed, say } from "./dom.js";

/** Draw the members and the configuration that `GET /v1/overview` answered. */
export function drawMembers({ configuration, replicas }) {
  say(byId("members-sum"), summed(configuration));
  keyed(byId("member-rows"), replicas, (each) => each.id, newMember, (row, each) => fillMember(row, each, configuration.number));
  const lines = [...configuration.fallbacks.map(fallback), ...waiting(replicas)];
  keyed(byId("member-notes"), lines, (line) => line, (line) => element("li", {}, line), () => {});
}

function summed({ number, before, members, removed, declared_dead: dead }) {
  const told = number === 0 ? ["The members are those of the cluster file; none was changed."] : [];
  if (before.length > 0) told.push(`The cluster changes from ${before.join(", ")} to ${members.join(", ")}: configuration ${number}.`);
  else if (number > 0) told.push(`Configuration ${number} is in force, chosen while the cluster ran: ${members.join(", ")}.`);
  if (dead.length > 0) told.push(`Declared dead: ${dead.join(", ")}.`);
  if (removed.length > 0) told.push(`Former members: ${removed.join(", ")}.`);
  return told.join(" ");
}

function newMember(member) {
  return element("tr", {}, element("th", { scope: "row" }, member.id), ...["", "number", "", ""].map((name) => element("td", { class: name || null })));
}

function fillMember(row, member, number) {
  const [, role, votes, configuration, release] = row.children;
  say(role, member.role);
  say(votes, String(member.votes));
  const own = member.configuration;
  say(configuration, own === null ? "–" : own === number ? String(own) : `${own}, not ${number} yet`);
  say(release, member.release ?? "–");
}

function fallback({ objects, condition, is_in_force: isInForce }) {
  return `${objects}: its fallback is ${isInForce ? "in force" : "not in force; it is"} while ${condition}.`;
}

/** Why replicas do not switch a standing rule that is due, each reason once. */
function waiting(replicas) {
  const reasons = [...new Set(replicas.map((each) => each.switch_waits).filter((why) => why !== ""))];
  return reasons.map((why) => `${replicas.filter((each) => each.switch_waits === why).map((each) => each.id).join(", ")}: ${why}.`);
}
