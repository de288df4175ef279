/** Construction of DOM elements. Text stays text: no module of the page parses HTML. */

const SVG = "http://www.w3.org/2000/svg";

export function make(name, attributes, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function draw(name, attributes, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) setAttribute(node, key, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Set an attribute: true without a value; false, null and undefined remove it. */
export function setAttribute(node, key, value) {
  if (value === false || value === null || value === undefined) node.removeAttribute(key);
  else if (node.getAttribute(key) !== String(value)) node.setAttribute(key, value === true ? "" : value);
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function byId(id) {
  return document.getElementById(id);
}
