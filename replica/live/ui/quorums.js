// The quorum choices in force: a table of each, and its constraint graph, drawn from the same facts.

import { byId, drawn, element } from "./dom.js";
import { hinted } from "./scroll.js";

const TOP = 28;
const WIDE = 560;
const NARROW = 430; // Below it, a box has its name and its quorum on two lines.
const LEAST = 260;

/** Draw what `GET /v1/choices` answered; the first choice for the type `open` is unfolded, and what the reader unfolded. */
export function drawChoices(choices, open) {
  const total = Object.values(choices.votes).reduce((sum, votes) => sum + votes, 0);
  const unfolded = new Set([...document.querySelectorAll("#choices details[open]")].map((each) => each.dataset.key));
  const isFirst = unfolded.size === 0;
  byId("choices").replaceChildren(...choices.choices.map((choice) => {
    const key = `${choice.type} ${choice.objects}`;
    const box = drawChoice(choice, total);
    box.dataset.key = key;
    box.dataset.type = choice.type;
    box.open = unfolded.has(key);
    return box;
  }));
  if (isFirst) unfold(open);
  if (choices.is_cut) byId("choices").append(element("p", { class: "help" }, "The cluster file has more rules."));
}

/** Unfold the first choice for a type, and fold the others. */
export function unfold(type) {
  const all = [...document.querySelectorAll("#choices details")];
  const first = all.find((each) => each.dataset.type === type);
  for (const each of all) each.open = each === first;
}

function drawChoice(choice, total) {
  const missing = [...new Set(choice.classes.filter((each) => !each.is_available).map((each) => each.name))];
  const name = choice.objects === "*" ? `Every ${choice.type} (default)` : `${choice.objects}, ${choice.type}`;
  const state = missing.length === 0
    ? element("span", { class: "state ready" }, "✓ all available")
    : element("span", { class: "state down" }, `✕ no quorum now${missing.length < choice.classes.length ? `: ${missing.join(", ")}` : ""}`);
  const box = element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `Quorums: ${name}` }, table(choice, total, name));
  const details = element("details", {}, element("summary", {}, element("strong", {}, name), " ", state), note(choice), figureOf(choice, total), box);
  hinted(box);
  return details;
}

function note(choice) {
  const words = [choice.ordering === "quorum" ? "Order of blind operations by quorums." : "Order of blind operations by clocks."];
  if (!choice.collect) words.push("Decided events are kept in the logs.");
  return element("p", { class: "help" }, words.join(" "));
}

function table(choice, total, name) {
  const head = ["Event", "Reads before", "Stored after", "Must meet", "Now"].map((text) => element("th", { scope: "col" }, text));
  const rows = choice.classes.map((each) => element("tr", {},
    element("th", { scope: "row" }, each.name),
    element("td", {}, size(each.initial, each.initial_system, "nobody")),
    element("td", {}, size(each.final, each.final_system, "nowhere")),
    element("td", {}, met(choice, each, total)),
    element("td", {}, each.is_available ? "✓ available" : "✕ no quorum")));
  return element("table", {}, element("caption", { class: "spoken" }, `Quorums: ${name}`),
    element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
}

function size(votes, system, none) {
  if (votes === 0) return none;
  return system ?? `${votes} ${votes === 1 ? "vote" : "votes"}`;
}

/** For each event that the operation depends on, the sum that makes the two quorums meet. */
function met(choice, event, total) {
  const finals = new Map(choice.classes.map((each) => [each.name, each]));
  const names = choice.constraints.filter((each) => each.operation === event.operation).map((each) => each.event_class);
  if (names.length === 0) return "nothing";
  if (event.initial_system !== null) return names.join(", ");
  const sums = names.map((name) => `${name}: ${event.initial} + ${finals.get(name).final} > ${total}`);
  return sums.map((sum) => sum.replaceAll(" ", "\u00a0")).join(", "); // A line ends between two of them.
}

/** A figure that draws the graph as wide as it is shown, so that its text is never smaller than the rest. */
function figureOf(choice, total) {
  const figure = element("figure");
  new ResizeObserver(() => {
    const width = Math.round(Math.max(LEAST, Math.min(WIDE, figure.clientWidth)));
    if (figure.clientWidth > 0 && Number(figure.dataset.width) !== width) {
      figure.dataset.width = width;
      figure.replaceChildren(graph(choice, total, width));
    }
  }).observe(figure);
  return figure;
}

/** The constraint graph: operations with what they read on the left, events with who stores them on the right. */
function graph(choice, total, width) {
  const operations = [...new Map(choice.classes.map((each) => [each.operation, each])).values()];
  const events = choice.classes.filter((each) => each.final > 0);
  const isNarrow = width < NARROW;
  const size = { width: Math.round(width * (isNarrow ? 0.45 : 0.36)), height: isNarrow ? 46 : 34, isNarrow };
  const height = TOP + (size.height + 10) * Math.max(operations.length, events.length);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: isNarrow ? "narrow" : null, role: "img", "aria-label": described(choice) });
  const right = width - size.width;
  svg.append(drawn("text", { x: 1, y: 14, class: "heading" }, "Operation reads"),
    drawn("text", { x: right, y: 14, class: "heading" }, "Event is stored at"));
  const leftOf = new Map(operations.map((each, place) => [each.operation, middle(place, operations.length, height)]));
  const rightOf = new Map(events.map((each, place) => [each.name, middle(place, events.length, height)]));
  const bend = (size.width + right) / 2;
  for (const each of choice.constraints) {
    const from = leftOf.get(each.operation);
    const to = rightOf.get(each.event_class);
    svg.append(drawn("path", { class: "edge", d: `M ${size.width} ${from} C ${bend} ${from}, ${bend} ${to}, ${right} ${to}` }));
  }
  for (const each of operations) {
    const hasQuorum = choice.classes.some((other) => other.operation === each.operation && other.is_available);
    const quorum = each.initial === 0 ? "nobody" : `${each.initial} of ${total}`;
    svg.append(box(0, leftOf.get(each.operation), size, each.operation, quorum, hasQuorum));
  }
  for (const each of events) {
    svg.append(box(right, rightOf.get(each.name), size, each.name, `${each.final} of ${total}`, each.is_available));
  }
  return svg;
}

function middle(place, count, height) {
  return TOP + ((height - TOP) / count) * (place + 0.5);
}

function box(x, y, size, name, quorum, isAvailable) {
  const shown = isAvailable ? name : `✕ ${name}`;
  const nameAt = { x: x + 10, y: size.isNarrow ? y - 4 : y + 5, class: "name" };
  const quorumAt = size.isNarrow
    ? { x: x + 10, y: y + 15, class: "size" }
    : { x: x + size.width - 11, y: y + 5, "text-anchor": "end", class: "size" };
  return drawn("g", { class: isAvailable ? "node" : "node lost" },
    drawn("rect", { x: x + 1, y: y - size.height / 2, width: size.width - 2, height: size.height, rx: 6 }),
    drawn("text", nameAt, shown), drawn("text", quorumAt, quorum));
}

function described(choice) {
  const told = choice.constraints.map((each) => `${each.operation} meets ${each.event_class}`);
  return `Constraint graph of a ${choice.type}: ${told.join("; ")}. The table below has the numbers.`;
}
