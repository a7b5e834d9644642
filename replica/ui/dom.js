// Elements and their text. Text goes in as text alone: nothing here can make markup of a value.

const SVG = "http://www.w3.org/2000/svg";

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
    if (value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** Words for those who listen. */
export function spoken(text) {
  return element("span", { class: "spoken" }, text);
}

/** Set the text of a node if it is another one: a live region speaks at every change. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Make the children of `parent` one for each item, in order. A child is made once for each key and filled at every call, so
 * that what has the focus keeps it.
 */
export function keyed(parent, items, keyOf, make, fill) {
  const keys = new Set(items.map(keyOf));
  for (const child of [...parent.children]) {
    if (!keys.has(child.dataset.key)) child.remove();
  }
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    const child = known.get(key) ?? make(item);
    child.dataset.key = key;
    fill(child, item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
}
