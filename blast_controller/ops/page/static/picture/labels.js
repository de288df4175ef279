/** Text that fits a width. */

import { draw } from "../base/dom.js";

const CHARACTER = 0.6;
const SMALLEST = 8;

/** Shorten a text at its start: numbered names differ at their end. */
export function fitted(text, width, size) {
  const fitting = Math.min(size, Math.max(width / (Math.max(text.length, 1) * CHARACTER), SMALLEST));
  const room = Math.max(Math.floor(width / (fitting * CHARACTER) + 1e-6), 2);
  return { text: text.length <= room ? text : `…${text.slice(1 - room)}`, size: fitting };
}

export function label(kind, text, x, y, width, size) {
  const fit = fitted(text, width, size);
  const attributes = { class: kind, x, y, "font-size": fit.size.toFixed(1), "text-anchor": "middle", dy: "0.35em" };
  return draw("text", attributes, fit.text);
}
