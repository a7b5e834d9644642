// Elements and their text. Text goes in as text alone: nothing here can make markup of a value, nor show one for another.

const SVG = "http://www.w3.org/2000/svg";

// Control characters, ends of lines and marks of direction: nobody sees them, and some turn around the text that follows.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** A text with what nobody would see spelled out, as \u202e: JSON text stays JSON of the same value. */
export function spelled(text) {
  return text.replace(UNSEEN, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The element of the page with this id. */
export function byId(id) {
  return document.getElementById(id);
}

/** A new element with attributes (null leaves one out) and children, which are nodes or text. */
export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** As `element`, of a drawing. */
export function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) node.setAttribute(name, spelled(String(value)));
  }
  node.append(...children.map((child) => (typeof child === "string" ? spelled(child) : child)));
  return node;
}

const PIECE = 16; // A piece without a sign at which names are parted is broken, too, where it is longer.

/** A name as nodes that a browser breaks behind its signs, and not inside its words. */
export function breakable(name) {
  const pieces = spelled(name).match(new RegExp(`[^/.:~@=+_-]{1,${PIECE}}[/.:~@=+_-]*|[/.:~@=+_-]{1,${PIECE}}`, "g")) ?? [];
  return pieces.flatMap((piece, place) => (place > 0 ? [element("wbr"), piece] : [piece]));
}

/** A number of things in words. */
export function counted(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

/** Words for those who listen. */
export function spoken(text) {
  return element("span", { class: "spoken" }, text);
}

/** Set the text of a node if it is another one: a live region speaks at every change. */
export function say(node, text) {
  const shown = spelled(text);
  if (node.textContent !== shown) node.textContent = shown;
}

/**
 * Make the children of `parent` one for each item, in order. A child is made once for each key and filled at every call, so
 * that what has the focus keeps it. Children that were not made here, and have no key, stay in front.
 */
export function keyed(parent, items, keyOf, make, fill) {
  const keys = new Set(items.map(keyOf));
  const made = [...parent.children].filter((child) => child.dataset.key !== undefined);
  for (const child of made) {
    if (!keys.has(child.dataset.key)) child.remove();
  }
  const known = new Map(made.map((child) => [child.dataset.key, child]));
  let place = made.find((child) => child.isConnected) ?? null;
  for (const item of items) {
    const key = keyOf(item);
    const child = known.get(key) ?? make(item);
    child.dataset.key = key;
    fill(child, item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
}
