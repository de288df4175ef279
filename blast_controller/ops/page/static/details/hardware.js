/** The details of hardware: a rack, a splitter, an optical switch, a static tree. */

import { make } from "../base/dom.js";
import { standing } from "../base/wiring.js";
import { held, stateOf } from "../lists/elements.js";
import { sign } from "../lists/states.js";
import { block, deed, facts, link, links, some, table } from "./pieces.js";

export function rackDetails(rack, look) {
  const { rows } = look;
  const trees = treesWhere(rows, (tree) => tree.rootRack === rack.name || tree.leafRacks.includes(rack.name));
  const names = [...new Set([...rack.opticalPorts.map((port) => port.element), ...Object.keys(rows.units.get(rack.name) ?? {})])];
  const margins = [...marginsAt(rows, rack.name)];
  return [
    ...awaySentence(rows, rack.device),
    facts([
      ["ToR", `${rack.device}, ${rows.away.has(rack.device) ? "disconnected" : "connected"}`],
      ["hosts", some(rack.hosts)],
      ["trees", trees],
    ]),
    elementsBlock("Optical ports", rack.name, names, look),
    block("Fibers", table(["port", "switch", "#input", "#output"], rack.opticalPorts.map(fibers))),
    ...(margins.length ? [block("Power margins", table(["tree", "#dBm", "#to sensitivity, dB", "#to overload, dB"], margins))] : []),
  ];
}

function fibers(port) {
  return [String(port.port), link("switch", port.opticalSwitch), `${port.switchInput ?? "–"}`, `${port.switchOutput ?? "–"}`];
}

function* marginsAt(rows, rack) {
  for (const request of rows.requests.values()) {
    for (const { grant, state } of request.parts) {
      const margin = state === "active" ? grant?.margins?.find((one) => one.rack === rack) : undefined;
      if (margin === undefined) continue;
      const figures = [margin.receivedDbm, margin.sensitivityMarginDb, margin.overloadMarginDb];
      yield [link("tree", String(grant.reservation)), ...figures.map((figure) => figure.toFixed(2))];
    }
  }
}

export function splitterDetails(splitter, look) {
  const { rows } = look;
  const names = [...new Set([splitter.element, ...Object.keys(rows.units.get(splitter.element) ?? {})])];
  return [
    facts([
      ["fan-out", `1:${splitter.fanOut}`],
      ["optical switch", link("switch", splitter.opticalSwitch)],
      ["input from switch output", String(splitter.switchOutput)],
      ["outputs to switch inputs", splitter.switchInputs.join(", ")],
      ["trees", treesWhere(rows, (tree) => tree.splitters.includes(splitter.name))],
    ]),
    elementsBlock("Splitter and outputs", splitter.element, names, look),
  ];
}

export function switchDetails(name, look) {
  const { rows, wiring } = look;
  const circuits = [...rows.trees.values()].flatMap((tree) => tree.crossConnects).filter(([where]) => where === name).length;
  const splitters = [...wiring.splitters.values()].filter((splitter) => splitter.opticalSwitch === name);
  const racks = [...wiring.racks.values()].filter((rack) => rack.opticalPorts.some((port) => port.opticalSwitch === name));
  const pieces = (rows.warm?.pieces ?? []).filter((piece) => piece.opticalSwitch === name);
  const kinds = pieces.map((piece) => [piece.fanOut ? `1:${piece.fanOut}` : "ports", `${piece.dark}`, `${piece.lit}`, `${piece.reserve}`]);
  return [
    ...awaySentence(rows, `switch:${name}`),
    facts([
      ["state", rows.away.has(`switch:${name}`) ? "disconnected" : "connected"],
      ["circuits of trees", String(circuits)],
      ["splitters", splitters.length ? links("splitter", splitters.map((one) => one.name)) : "none"],
      ["racks", links("rack", racks.map((one) => one.name))],
    ]),
    ...(kinds.length ? [block("Resources without a transfer", table(["kind", "#dark", "#warm", "#dark reserve"], kinds))] : []),
  ];
}

export function staticDetails(name, look) {
  return [elementsBlock("Static tree", `static:${name}`, [`static:${name}`], look)];
}

function awaySentence(rows, device) {
  const away = rows.away.get(device);
  return away ? [make("p", { class: "message bad" }, `${device} is disconnected: ${away.reason}`)] : [];
}

function treesWhere(rows, test) {
  const found = [...rows.trees.values()].filter(test).map((tree) => String(tree.reservation));
  return found.length ? links("tree", found) : "none";
}

function elementsBlock(title, unit, names, { rows, mayAct, isPast }) {
  const lines = names.map((element) => {
    const { holder, unusable } = standing(rows, unit, element);
    const state = stateOf(holder, unusable);
    return [element, stateCell(state), detailOf(holder, unusable), mayAct && !isPast ? act(element, unusable) : ""];
  });
  return block(title, table(["element", "state", "", ""], lines));
}

function stateCell(state) {
  return make("span", { class: "state", "data-state": state }, `${sign(state)} ${state}`);
}

function detailOf(holder, unusable) {
  if (unusable !== undefined) return unusable;
  return holder ? link("tree", String(holder), held(holder)) : held(holder);
}

function act(element, unusable) {
  return unusable === undefined ? deed("quarantine", "Quarantine…", { element }) : deed("release", "Release…", { element });
}
