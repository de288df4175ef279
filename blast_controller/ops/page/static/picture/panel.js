/** The fabric's picture: its layers, the selection, and the tooltip. */

import { byId, draw, setAttribute, setText } from "../base/dom.js";
import { requestPaint } from "../base/frames.js";
import { parted } from "../base/rows.js";
import { count } from "../base/units.js";
import { Camera } from "./camera.js";
import { requestOf } from "./colors.js";
import { Geometry } from "./geometry.js";
import { groundPainter } from "./ground.js";
import { MarksLayer } from "./marks.js";
import { TreesLayer } from "./trees.js";

const CLICK_PIXELS = 4;

export class PicturePanel {
  constructor(shown, selection, colors) {
    this.shown = shown;
    this.selection = selection;
    this.colors = colors;
    this.panel = byId("picture");
    this.svg = draw("svg", { class: "world", "aria-hidden": "true" });
    this.ground = draw("g", { class: "ground" });
    const [trees, marks] = [draw("g", { class: "trees" }), draw("g", { class: "marks" })];
    this.svg.append(this.ground, trees, marks);
    this.panel.append(this.svg);
    this.trees = new TreesLayer(trees, shown, colors);
    this.marks = new MarksLayer(marks, shown);
    this.camera = new Camera(this.panel, this.svg);
    this.geometry = null;
    this.painter = (mayGoOn) => this.paint(mayGoOn);
    this.pointer = null;
    this.hoverer = () => this.hover(this.pointer);
    shown.onChange((names) => this.note(names));
    selection.onChange(() => this.showChoice());
    this.listen();
  }

  /** Show a layout of the server with its wiring. */
  begin(picture, wiring) {
    this.geometry = new Geometry(picture, wiring);
    setAttribute(this.svg, "width", picture.width);
    setAttribute(this.svg, "height", picture.height);
    setAttribute(this.svg, "viewBox", `0 0 ${picture.width} ${picture.height}`);
    setAttribute(this.svg, "data-crowded", this.geometry.hostsShown === 0);
    this.ground.replaceChildren();
    requestPaint(groundPainter(this.ground, this.geometry));
    this.trees.begin(this.geometry);
    this.marks.begin(this.geometry);
    this.camera.begin(this.geometry.bounds);
    this.showChoice();
    requestPaint(this.painter);
  }

  note(names) {
    if (this.geometry === null) return;
    if (names === null) {
      this.trees.staleAll();
      this.marks.stale = true;
    } else {
      for (const name of names) {
        const [kind, key] = parted(name);
        if (kind === "tree") this.trees.stale.add(key);
        if (kind === "unit" || kind === "away") this.marks.stale = true;
      }
    }
    requestPaint(this.painter);
  }

  paint(mayGoOn) {
    this.marks.paint();
    const isDone = this.trees.paint(mayGoOn);
    if (isDone) this.describe();
    return isDone;
  }

  /** Summarize the picture for screen readers. */
  describe() {
    const { rows } = this.shown;
    const parts = [
      count(this.geometry.racks.size, "rack"),
      count(this.geometry.splitters.size, "splitter"),
      count(rows.trees.size, "light tree"),
      `${count(rows.away.size, "device")} disconnected`,
    ];
    setText(byId("fabric-counts"), parts.join(" · "));
    setAttribute(byId("no-light"), "hidden", rows.trees.size > 0);
  }

  // ------------------------------------------------------------------------------------------- what is chosen

  showChoice() {
    if (this.geometry === null) return;
    const { chosen } = this.selection;
    const test = chosen === null ? null : chooser(chosen);
    // A selection without a tree dims nothing.
    const hasLight = test !== null && [...this.shown.rows.trees.values()].some(test);
    this.trees.choose(hasLight ? test : null);
    const box = chosen === null ? null : this.geometry.box(chosen.kind, chosen.name);
    this.marks.choose(box);
    if (box !== null) this.camera.reveal(box);
  }

  listen() {
    let pressed = null;
    this.panel.addEventListener("pointerdown", (event) => (pressed = event));
    this.panel.addEventListener("pointerup", (event) => {
      const way = pressed ? Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY) : Infinity;
      if (way < CLICK_PIXELS) this.click(event);
      pressed = null;
    });
    this.panel.addEventListener("pointermove", (event) => {
      this.pointer = event;
      requestPaint(this.hoverer);
    });
    this.panel.addEventListener("pointerleave", () => {
      this.pointer = null;
      setAttribute(byId("hint"), "hidden", true);
    });
  }

  found(event) {
    const number = event.target.closest?.("[data-tree]")?.getAttribute("data-tree");
    const row = number ? this.shown.rows.trees.get(number) : undefined;
    if (row !== undefined && !event.target.closest(".root")) return { kind: "tree", name: number, row };
    return this.geometry?.at(...this.camera.pointAt(event.clientX, event.clientY)) ?? null;
  }

  click(event) {
    const found = this.found(event);
    if (found === null) this.selection.clear();
    else if (found.kind === "tree" && this.shown.rows.requests.has(requestOf(found.row))) {
      this.selection.choose("request", requestOf(found.row));
    } else this.selection.choose(found.kind, found.name);
  }

  /** A painter: once a frame suffices. */
  hover(event) {
    if (event === null) return true;
    const hint = byId("hint");
    const found = this.found(event);
    setAttribute(hint, "hidden", found === null || this.panel.classList.contains("dragging"));
    if (found === null) return true;
    setText(hint, words(found));
    const room = this.panel.getBoundingClientRect();
    hint.style.left = `${Math.min(event.clientX - room.left + 14, room.width - hint.offsetWidth - 8)}px`;
    hint.style.top = `${Math.min(event.clientY - room.top + 16, room.height - hint.offsetHeight - 8)}px`;
    return true;
  }
}

function words({ kind, name, row }) {
  if (kind !== "tree") return kind === "switch" ? `optical switch ${name}` : `${kind} ${name}`;
  return `tree ${row.reservation} · ${row.state} · ${row.key} · ${row.rootRack} → ${count(row.leafRacks.length, "rack")}`;
}

/** Return the test for trees of the selection. */
function chooser({ kind, name }) {
  const tests = {
    request: (row) => requestOf(row) === name,
    tree: (row) => String(row.reservation) === name,
    rack: (row) => row.rootRack === name || row.leafRacks.includes(name),
    splitter: (row) => row.splitters.includes(name),
    switch: (row) => row.crossConnects.some(([circuitSwitch]) => circuitSwitch === name),
    static: () => false,
  };
  return tests[kind];
}
