/** Paths of fibers, cross-connects and splitters, identical to the output of `blast fabric svg`. Points are
 * [x, y]; a fiber is {near, far} and optionally {bends}, its corners. */

const CORNER = 3;

/** Format with one decimal like Python: ties round to even. */
export function decimal(value) {
  const isBetween = Number.isInteger(value * 4) && !Number.isInteger(value * 2);
  if (!isBetween) return value.toFixed(1);
  const tenth = Math.floor(value * 10);
  return ((tenth % 2 === 0 ? tenth : tenth + 1) / 10).toFixed(1);
}

function at(x, y) {
  return `${decimal(x)} ${decimal(y)}`;
}

export function fiberPath(fiber) {
  const { near, far } = fiber;
  const last = lastCorner(fiber);
  const path = `M${at(...near)}${corners(fiber)}`;
  if (last[0] === far[0]) return `${path}V${decimal(far[1])}`;
  const middle = (last[1] + far[1]) / 2;
  return `${path}C${at(last[0], middle)} ${at(far[0], middle)} ${at(...far)}`;
}

/** Return the start of the last section, which reaches the switch. */
function lastCorner({ near, bends }) {
  return bends?.length ? bends[bends.length - 1] : near;
}

function corners(fiber) {
  if (!fiber.bends?.length) return "";
  const points = [fiber.near, ...fiber.bends, [lastCorner(fiber)[0], fiber.far[1]]];
  let path = "";
  for (let place = 1; place + 1 < points.length; place += 1) {
    const start = toward(points[place], points[place - 1]);
    const end = toward(points[place], points[place + 1]);
    path += `L${at(...start)}Q${at(...points[place])} ${at(...end)}`;
  }
  return path;
}

function toward(start, end) {
  const length = Math.hypot(end[0] - start[0], end[1] - start[1]);
  const share = length ? Math.min(CORNER / length, 0.5) : 0;
  return [start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])];
}

/** A cross-connect: an S between the two edges of the switch, an arch between two points of one edge. */
export function circuitPath(start, end, box) {
  let bend = (start[1] + end[1]) / 2;
  if (start[1] === end[1]) {
    const depth = Math.min(36 + Math.abs(start[0] - end[0]) * 0.35, box.height * 1.1);
    bend = start[1] + (start[1] === box.y ? depth : -depth);
  }
  return `M${at(...start)}C${at(start[0], bend)} ${at(end[0], bend)} ${at(...end)}`;
}

/** Return the path within a splitter, from the input to each lit output. */
export function combPath(box, trunk, outputs) {
  if (outputs.length === 0) return "";
  const bar = box.y + box.height - 20;
  const right = Math.max(...outputs.map(([x]) => x));
  const teeth = outputs.map(([x, y]) => `M${decimal(x)} ${decimal(bar)}V${decimal(y)}`).join("");
  return `M${at(...trunk)}V${decimal(bar)}H${decimal(right)}${teeth}`;
}

/** Return an arrow head on a fiber, into the switch (1) or out of it (-1). */
export function arrowPath(fiber, toSwitch, size) {
  const [x, y] = nearTheSwitch(fiber);
  const tip = (fiber.far[1] > fiber.near[1] ? size : -size) * toSwitch;
  const wide = 0.9 * size;
  return `M${at(x - wide, y - tip)}H${decimal(x + wide)}L${at(x, y + tip)}Z`;
}

function nearTheSwitch(fiber) {
  const last = lastCorner(fiber);
  const { far } = fiber;
  if (last[0] !== far[0]) return [(last[0] + far[0]) / 2, (last[1] + far[1]) / 2];
  const way = far[1] > last[1] ? 1 : -1;
  return [far[0], far[1] - way * Math.min(Math.abs(far[1] - last[1]) / 2, 23)];
}

export function boxPath({ x, y, width, height }) {
  return `M${x} ${y}h${width}v${height}h${-width}z`;
}

export function crossPath(x, y, arm) {
  return `M${x - arm} ${y - arm}l${2 * arm} ${2 * arm}m0 ${-2 * arm}l${-2 * arm} ${2 * arm}`;
}
