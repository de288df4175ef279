/** Parts shared by all details. Data attributes mark links and actions. */

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

/** Return links separated by commas, at limit `limit` of them. */
export function links(kind, names, limit = 40) {
  const shown = names.slice(0, limit).flatMap((name, place) => (place ? [", ", link(kind, name)] : [link(kind, name)]));
  if (names.length > limit) shown.push(` and ${names.length - limit} more`);
  return make("span", {}, ...shown);
}

export function some(names, limit = 40) {
  return names.length > limit ? `${names.slice(0, limit).join(", ")} and ${names.length - limit} more` : names.join(", ");
}

/** Return an operator's button; the click handler reads its arguments from the data attribute. */
export function deed(name, words, given) {
  return make("button", { type: "button", "data-do": name, "data-given": JSON.stringify(given) }, words);
}

export function table(heads, rows) {
  const cell = (name) => (content, place) => make(name, { class: heads[place].startsWith("#") ? "figure" : null }, content);
  const head = make("tr", {}, ...heads.map((title, place) => cell("th")(title.replace(/^#/, ""), place)));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell("td"))))));
}
