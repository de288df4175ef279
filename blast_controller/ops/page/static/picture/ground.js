/** The static layer: fibers, switches, splitters and racks, drawn once. Neighbors of a kind share one path. */

import { draw } from "../base/dom.js";
import { chunks } from "./geometry.js";
import { label } from "./labels.js";
import { boxPath } from "./paths.js";

const HOST_LINE = 15;
const STRIP = 30;
const SLICE = 200;

/** A painter that fills a group in steps. */
export function groundPainter(group, geometry) {
  const pieces = allPieces(geometry);
  return (mayGoOn) => {
    do {
      for (let made = 0; made < SLICE; made += 1) {
        const { value, done } = pieces.next();
        if (done) return true;
        group.append(value);
      }
    } while (mayGoOn());
    return false;
  };
}

function* allPieces(geometry) {
  const { racks, splitters, switches } = geometry;
  for (const box of switches.values()) yield draw("path", { class: "switch", d: boxPath(box) });
  for (const d of geometry.fibers()) yield draw("path", { class: "fiber", d });
  for (const some of chunks([...splitters.values(), ...racks.values()])) {
    yield draw("path", { class: "box", d: some.map(boxPath).join("") });
  }
  for (const [name, box] of switches) yield switchLabel(name, box);
  for (const [name, box] of splitters) {
    yield label("name", `${name}  1:${box.fanOut}`, box.x + box.width / 2, box.y + 14, box.width - 8, 13);
  }
  for (const [name, box] of racks) {
    yield label("name strong", name, box.x + box.width / 2, box.y + box.height / 2, box.width - 8, 13);
    if (geometry.hostsShown) yield* hosts(geometry.wiring.racks.get(name)?.hosts ?? [], box, geometry.hostsShown);
  }
}

function switchLabel(name, box) {
  const [x, y] = [box.x + STRIP / 2 + 2, box.y + box.height / 2];
  const text = label("name strong", name, x, y, box.height - 12, 14);
  text.setAttribute("transform", `rotate(-90 ${x} ${y})`);
  return text;
}

function* hosts(names, box, limit) {
  const shown = names.length > limit + 1 ? [...names.slice(0, limit), `+ ${names.length - limit}`] : names;
  for (const [line, name] of shown.entries()) {
    yield label("host", name, box.x + box.width / 2, box.y + box.height + (line + 0.8) * HOST_LINE, box.width + 8, 11);
  }
}
