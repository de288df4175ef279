/** Pieces that the details of different things have in common. What can be chosen or done says so in data attributes. */

import { make } from "../base/dom.js";

export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return make("dl", { class: "facts" }, ...shown.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

export function block(title, ...children) {
  return make("section", { class: "block" }, make("h3", {}, title), ...children);
}

export function link(kind, name, words = name) {
  return make("button", { type: "button", class: "link", "data-kind": kind, "data-name": name }, words);
}

/** Several with commas, the first `most` of them. */
export function links(kind, names, most = 40) {
  const shown = names.slice(0, most).flatMap((name, place) => (place ? [", ", link(kind, name)] : [link(kind, name)]));
  if (names.length > most) shown.push(` and ${names.length - most} more`);
  return make("span", {}, ...shown);
}

export function some(names, most = 40) {
  return names.length > most ? `${names.slice(0, most).join(", ")} and ${names.length - most} more` : names.join(", ");
}

/** A button for an operator; the arguments are read back where it is pressed. */
export function deed(name, words, given) {
  return make("button", { type: "button", "data-do": name, "data-given": JSON.stringify(given) }, words);
}

export function table(heads, rows) {
  const cell = (name) => (content, place) => make(name, { class: heads[place].startsWith("#") ? "figure" : null }, content);
  const head = make("tr", {}, ...heads.map((title, place) => cell("th")(title.replace(/^#/, ""), place)));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell("td"))))));
}
