/** The table of requests, filtered and sorted, of the displayed moment. */

import { byId, make, setAttribute, setText } from "../base/dom.js";
import { parted } from "../base/rows.js";
import { age as ageOf, count } from "../base/units.js";
import { percent, progress } from "./progress.js";
import { isFinal, sign } from "./states.js";
import { Table } from "./table.js";

const TESTS = {
  all: () => true,
  live: (row) => !isFinal(row.state),
  waiting: (row) => row.parts.some((part) => part.state === "pending"),
  lit: (row) => row.parts.some((part) => part.state === "active"),
  ended: (row) => isFinal(row.state),
};

const ORDERS = {
  state: (one, other) => isFinal(one.state) - isFinal(other.state) || one.state.localeCompare(other.state),
  key: (one, other) => one.key.localeCompare(other.key, undefined, { numeric: true }),
  way: (one, other) => one.sender.localeCompare(other.sender, undefined, { numeric: true }),
  progress: (one, other) => (progress(one) ?? -1) - (progress(other) ?? -1),
  age: (one, other) => other.arrival - one.arrival,
};

export function nameOf(row) {
  return `${row.tenant}/${row.key}`;
}

export function requestsTable(shown, selection, colors) {
  const table = new Table("requests", {
    shown,
    orders: ORDERS,
    order: "age",
    rows: (rows) => rows.requests.values(),
    tests: TESTS,
    words: (row) => [row.key, row.tenant, row.state, row.sender, ...row.receivers].join("\n"),
    concerns: (name) => ["request", "tree"].includes(parted(name)[0]),
    keyOf: nameOf,
    makeRow: () => requestRow(shown, colors),
    choose: (row) => selection.choose("request", nameOf(row)),
    isEmpty: "No requests. `blast request --from HOST --to HOST,… --bytes 300MB` submits one.",
  });
  selection.onChange((chosen) => table.list.mark(chosen?.kind === "request" ? chosen.name : null));
  // Ages grow without events.
  setInterval(() => byId("requests").hidden || table.list.show(), 1000);
  return table;
}

function requestRow(shown, colors) {
  const number = make("span", { class: "swatch", "aria-hidden": "true" });
  const state = make("span", { role: "gridcell", class: "state" });
  const key = make("span", { class: "ellipsis" });
  const tenant = make("span", { class: "faint ellipsis" });
  const way = make("span", { role: "gridcell", class: "ellipsis" });
  const bar = make("span", { class: "bar-fill" });
  const share = make("span", { class: "share" });
  const age = make("span", { role: "gridcell", class: "figure" });
  const names = make("span", { role: "gridcell", class: "names" }, number, key, tenant);
  const progressCell = make("span", { role: "gridcell", class: "progress" }, make("span", { class: "bar-room" }, bar), share);
  const node = make("div", { role: "row", class: "row" }, state, names, way, progressCell, age);
  const fill = (row) => {
    const color = colors.seen(nameOf(row));
    setAttribute(number, "class", color === null ? "swatch none" : `swatch color-${color}`);
    setText(state, `${sign(row.state)} ${row.state}`);
    setAttribute(state, "data-state", row.state);
    setText(key, row.key);
    setText(tenant, row.tenant);
    setAttribute(names, "title", `${row.key} of ${row.tenant}`);
    setText(way, `${row.sender} → ${row.receivers.length}`);
    setAttribute(way, "title", `from ${row.sender} to ${count(row.receivers.length, "receiver")}`);
    const reached = progress(row);
    bar.style.transform = `scaleX(${reached ?? 0})`;
    setText(share, percent(reached));
    setText(age, ageOf(shown.now - row.receivedAt));
  };
  return { node, fill };
}
