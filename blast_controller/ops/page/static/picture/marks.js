/** Marks: a cross at unusable elements, dashes around disconnected devices, a frame around the selection. */

import { draw, setAttribute } from "../base/dom.js";
import { standing } from "../base/wiring.js";
import { boxPath, crossPath } from "./paths.js";

const ARM = 5.5;

export class MarksLayer {
  constructor(group, shown) {
    this.shown = shown;
    this.away = draw("path", { class: "away" });
    this.crosses = draw("path", { class: "cross" });
    this.frame = draw("path", { class: "frame" });
    group.append(this.away, this.crosses, this.frame);
    this.geometry = null;
    this.stale = false;
  }

  begin(geometry) {
    this.geometry = geometry;
    this.stale = true;
  }

  paint() {
    if (!this.stale) return;
    this.stale = false;
    const { rows } = this.shown;
    setAttribute(this.away, "d", [...this.awayBoxes(rows)].filter((box) => box).map(boxPath).join(""));
    setAttribute(this.crosses, "d", [...this.points(rows)].map(([x, y]) => crossPath(x, y, ARM)).join(""));
  }

  *awayBoxes(rows) {
    for (const device of rows.away.keys()) {
      const name = device.slice(device.indexOf(":") + 1);
      if (device.startsWith("switch:")) yield this.geometry.switches.get(name);
      for (const rack of this.geometry.wiring.racksOfDevice.get(device) ?? []) yield this.geometry.racks.get(rack);
    }
  }

  *points(rows) {
    for (const [unit, elements] of rows.units) {
      for (const element of Object.keys(elements)) {
        if (standing(rows, unit, element).unusable === undefined) continue;
        const point = this.geometry.markOf(unit, element);
        if (point !== null) yield point;
      }
    }
  }

  choose(box) {
    setAttribute(this.frame, "d", box ? boxPath(grown(box, 4)) : "");
  }
}

function grown({ x, y, width, height }, by) {
  return { x: x - by, y: y - by, width: width + 2 * by, height: height + 2 * by };
}
