/** The picture's layout, indexed by the names in rows. */

import { arrowPath, circuitPath, combPath, fiberPath } from "./paths.js";

const EDGE = 8;
const NEIGHBORS = 40;

export class Geometry {
  constructor(picture, wiring) {
    this.width = picture.width;
    this.height = picture.height;
    this.hostsShown = picture.hostsShown ?? 4;
    this.wiring = wiring;
    this.switches = named(picture.switches);
    this.splitters = named(picture.splitters);
    this.racks = named(picture.racks);
    this.intoSwitch = byPort(picture.intoSwitch);
    this.outOfSwitch = byPort(picture.outOfSwitch);
  }

  get arrowSize() {
    return this.hostsShown ? 5 : 3.4;
  }

  /** Return the drawing of a tree: `light`, `crossings` (its part within switches), heads, and its start. */
  tree(row) {
    const light = [];
    const crossings = [];
    const heads = [];
    const used = new Set();
    let start = null;
    for (const [name, input, output] of row.crossConnects) {
      const source = this.intoSwitch.get(`${name}/${input}`);
      const target = this.outOfSwitch.get(`${name}/${output}`);
      used.add(`${name}/${input}`);
      if (source === undefined || target === undefined) continue;
      const circuit = circuitPath(source.far, target.far, this.switches.get(name));
      light.push(fiberPath(source), circuit, fiberPath(target));
      crossings.push(circuit);
      heads.push(arrowPath(source, 1, this.arrowSize), arrowPath(target, -1, this.arrowSize));
      start ??= source.far;
    }
    light.push(...row.splitters.map((name) => this.comb(name, used)));
    return { light: light.join(""), crossings: crossings.join(""), heads: heads.join(""), start };
  }

  comb(name, used) {
    const box = this.splitters.get(name);
    const wired = this.wiring.splitters.get(name);
    if (box === undefined || wired === undefined) return "";
    const outputs = wired.switchInputs.map((input) => `${wired.opticalSwitch}/${input}`).filter((output) => used.has(output));
    const trunk = this.outOfSwitch.get(`${wired.opticalSwitch}/${wired.switchOutput}`);
    return combPath(box, trunk.near, outputs.map((output) => this.intoSwitch.get(output).near));
  }

  /** Return the bounding box of the drawing, without empty margins. */
  get bounds() {
    const boxes = [...this.switches.values(), ...this.splitters.values(), ...this.racks.values()];
    const top = Math.min(this.height, ...boxes.map((box) => box.y));
    return { x: 0, y: top - EDGE, width: this.width, height: this.height - top + 2 * EDGE };
  }

  /** Yield paths of adjacent fibers, so that the browser can skip paths outside the view. */
  *fibers() {
    const all = [...this.intoSwitch.values(), ...this.outOfSwitch.values()].sort((one, other) => one.far[0] - other.far[0]);
    for (const some of chunks(all)) yield some.map(fiberPath).join("");
  }

  /** Return the box at a point of the picture: {kind, name} or null. */
  at(x, y) {
    for (const [kind, boxes] of [["rack", this.racks], ["splitter", this.splitters], ["switch", this.switches]]) {
      for (const [name, box] of boxes) {
        if (x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height) return { kind, name };
      }
    }
    return null;
  }

  box(kind, name) {
    const boxes = { rack: this.racks, splitter: this.splitters, switch: this.switches }[kind];
    return boxes?.get(name) ?? null;
  }

  /** Return the position of an element's mark: a port above its rack, an output below its splitter, others at a corner. */
  markOf(unit, element) {
    const rack = this.wiring.racks.get(unit);
    const port = rack?.opticalPorts.find((one) => element === one.element || element.startsWith(`${one.element}/`));
    if (port !== undefined) return this.portMark(port);
    const { name } = this.wiring.ownerOf(unit);
    const wired = this.wiring.splitters.get(name);
    if (element.startsWith("output:") && wired !== undefined) {
      const output = this.intoSwitch.get(`${wired.opticalSwitch}/${element.slice(element.lastIndexOf("/") + 1)}`);
      return output ? [output.near[0], output.near[1] + 8] : null;
    }
    const box = this.splitters.get(name);
    return box ? [box.x + box.width - 2, box.y + 2] : null;
  }

  portMark(port) {
    const ends = [
      this.intoSwitch.get(`${port.opticalSwitch}/${port.switchInput}`),
      this.outOfSwitch.get(`${port.opticalSwitch}/${port.switchOutput}`),
    ].filter((end) => end !== undefined);
    if (ends.length === 0) return null;
    return [ends.reduce((sum, end) => sum + end.near[0], 0) / ends.length, ends[0].near[1] - 10];
  }
}

export function* chunks(all) {
  for (let start = 0; start < all.length; start += NEIGHBORS) yield all.slice(start, start + NEIGHBORS);
}

function named(boxes) {
  return new Map(boxes.map((box) => [box.name, box]));
}

function byPort(fibers) {
  return new Map(fibers.map((fiber) => [`${fiber.opticalSwitch}/${fiber.port}`, fiber]));
}
