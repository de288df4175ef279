/** The table of hardware: ports, splitters, their outputs, static trees, optical switches and ToRs. */

import { make, setAttribute, setText } from "../base/dom.js";
import { parted } from "../base/rows.js";
import { standing } from "../base/wiring.js";
import { sign } from "./states.js";
import { Table } from "./table.js";

const TESTS = {
  all: () => true,
  trouble: (row) => isTrouble(row),
  reserved: (row) => row.state === "reserved",
  free: (row) => row.state === "free",
};
const RANKS = { disconnected: 0, unusable: 1, reserved: 2, probed: 3, free: 4 };

const byName = new Intl.Collator(undefined, { numeric: true }).compare;
const ORDERS = {
  state: (one, other) => RANKS[one.state] - RANKS[other.state] || byName(one.element, other.element),
  name: (one, other) => byName(one.element, other.element),
  detail: (one, other) => byName(one.detail, other.detail),
};

export function elementsTable(shown, selection) {
  const table = new Table("elements", {
    shown,
    orders: ORDERS,
    order: "state",
    rows: allElements,
    tests: TESTS,
    words: (row) => [row.element, row.state, row.detail, row.hosts].join("\n"),
    concerns: (name) => name === "fabric" || ["unit", "away"].includes(parted(name)[0]),
    keyOf: (row) => row.element,
    makeRow: elementRow,
    choose: (row) => selection.choose(row.kind, row.owner),
    isEmpty: "No hardware data yet.",
  });
  selection.onChange((chosen) => {
    const isHere = chosen !== null && table.list.items.find((row) => row.kind === chosen.kind && row.owner === chosen.name);
    const isChosen = table.list.items.find((row) => row.element === table.list.active);
    if (isChosen && chosen && isChosen.kind === chosen.kind && isChosen.owner === chosen.name) table.list.mark(isChosen.element);
    else table.list.mark(isHere ? isHere.element : null);
  });
  return table;
}

function* allElements(rows) {
  if (rows.fabric === null) return;
  for (const name of rows.fabric.opticalSwitches) yield device(rows, `switch:${name}`, "switch", name, "");
  const listed = new Set();
  for (const rack of rows.fabric.racks) {
    const hosts = rack.hosts.join(" ");
    if (!listed.has(rack.device)) yield device(rows, rack.device, "rack", rack.name, hosts);
    listed.add(rack.device);
    const names = rack.opticalPorts.map((port) => port.element);
    for (const element of withPieces(rows, rack.name, names)) yield piece(rows, rack.name, element, "rack", rack.name, hosts);
  }
  for (const splitter of rows.fabric.splitters) {
    for (const element of withPieces(rows, splitter.element, [splitter.element])) {
      yield piece(rows, splitter.element, element, "splitter", splitter.name, "");
    }
  }
  for (const element of rows.fabric.staticTrees) {
    yield piece(rows, element, element, "static", element.slice(element.indexOf(":") + 1), "");
  }
}

/** The server lists sides of ports and splitter outputs only if they are in use or unusable. */
function withPieces(rows, unit, names) {
  return new Set([...names, ...Object.keys(rows.units.get(unit) ?? {})]);
}

function device(rows, element, kind, owner, hosts) {
  const reason = rows.away.get(element)?.reason;
  return { element, kind, owner, hosts, state: reason === undefined ? "free" : "disconnected", detail: reason ?? "connected" };
}

function piece(rows, unit, element, kind, owner, hosts) {
  const { holder, unusable } = standing(rows, unit, element);
  const state = stateOf(holder, unusable);
  return { element, kind, owner, hosts, state, detail: unusable ?? held(holder) };
}

export function stateOf(holder, unusable) {
  if (unusable !== undefined) return "unusable";
  if (holder === undefined) return "free";
  return holder === 0 ? "probed" : "reserved";
}

export function held(holder) {
  if (holder === undefined) return "";
  return holder === 0 ? "being probed" : `tree ${holder}`;
}

function isTrouble(row) {
  return row.state === "unusable" || row.state === "disconnected";
}

function elementRow() {
  const state = make("span", { role: "gridcell", class: "state" });
  const name = make("span", { role: "gridcell", class: "ellipsis" });
  const detail = make("span", { role: "gridcell", class: "ellipsis faint" });
  const node = make("div", { role: "row", class: "row" }, state, name, detail);
  const fill = (row) => {
    const word = row.state === "free" && row.detail === "connected" ? "up" : row.state;
    setText(state, `${sign(row.state)} ${word}`);
    setAttribute(state, "data-state", row.state);
    setText(name, row.element);
    setAttribute(name, "title", row.element);
    setText(detail, row.detail);
    setAttribute(detail, "title", row.detail || null);
  };
  return { node, fill };
}

