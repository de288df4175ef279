/** The layer of light trees: one group for each tree, redrawn only when its row changes. */

import { draw, setAttribute, setText } from "../base/dom.js";
import { requestOf } from "./colors.js";
import { label } from "./labels.js";
import { boxPath } from "./paths.js";

export class TreesLayer {
  constructor(group, shown, colors) {
    this.group = group;
    this.shown = shown;
    this.colors = colors;
    this.geometry = null;
    this.drawn = new Map();
    this.stale = new Set();
    this.chosen = null;
  }

  begin(geometry) {
    this.geometry = geometry;
    this.group.replaceChildren();
    this.drawn.clear();
    this.staleAll();
  }

  staleAll() {
    this.stale = new Set([...this.shown.rows.trees.keys(), ...this.drawn.keys()]);
  }

  /** One step of a painter. */
  paint(mayGoOn) {
    for (const number of this.stale) {
      this.stale.delete(number);
      this.drawOne(number);
      if (!mayGoOn()) return this.stale.size === 0;
    }
    return true;
  }

  drawOne(number) {
    const row = this.shown.rows.trees.get(number);
    let tree = this.drawn.get(number);
    if (row === undefined) {
      tree?.group.remove();
      this.drawn.delete(number);
      return;
    }
    if (tree === undefined) {
      tree = new DrawnTree(number);
      this.drawn.set(number, tree);
      this.group.append(tree.group);
    }
    tree.show(row, this.geometry, this.colors.of(requestOf(row)));
    tree.choose(this.chosen);
  }

  /** Highlight the trees that pass a test (row) -> boolean; null highlights none. */
  choose(test) {
    this.chosen = test;
    setAttribute(this.group, "data-choice", test !== null);
    for (const tree of this.drawn.values()) tree.choose(test);
  }
}

class DrawnTree {
  constructor(number) {
    this.row = null;
    this.title = draw("title");
    this.leaves = draw("path", { class: "leaves" });
    this.root = draw("path", { class: "root" });
    this.rootName = draw("g");
    this.halo = draw("path", { class: "halo" });
    this.light = draw("path", { class: "light" });
    this.heads = draw("path", { class: "heads" });
    this.number = draw("g", { class: "number" });
    const parts = [this.title, this.leaves, this.root, this.rootName, this.halo, this.light, this.heads, this.number];
    this.group = draw("g", { "data-tree": number }, ...parts);
  }

  show(row, geometry, color) {
    const before = this.row;
    this.row = row;
    setAttribute(this.group, "class", `tree color-${color}`);
    setAttribute(this.group, "data-state", row.state);
    const way = `from ${row.rootRack} to ${row.leafRacks.join(", ")}`;
    setText(this.title, `tree ${row.reservation} (${row.state}): ${row.key}, ${way}`);
    if (before === null || !isSameLight(before, row)) this.showLight(row, geometry);
  }

  showLight(row, geometry) {
    const { light, crossings, heads, start } = geometry.tree(row);
    setAttribute(this.light, "d", light);
    setAttribute(this.halo, "d", crossings);
    setAttribute(this.heads, "d", heads);
    setAttribute(this.leaves, "d", boxes(row.leafRacks, geometry));
    setAttribute(this.root, "d", boxes([row.rootRack], geometry));
    const root = geometry.racks.get(row.rootRack);
    this.rootName.replaceChildren(...(root ? [rootLabel(row.rootRack, root)] : []));
    this.number.replaceChildren(...(start ? numberLabel(row.reservation, start) : []));
  }

  choose(test) {
    const isChosen = test !== null && this.row !== null && test(this.row);
    this.group.classList.toggle("chosen", isChosen);
    // The selected tree is drawn above the others.
    if (isChosen && this.group.nextSibling) this.group.parentNode.append(this.group);
  }
}

function isSameLight(one, other) {
  const parts = (row) => JSON.stringify([row.crossConnects, row.splitters, row.leafRacks, row.rootRack]);
  return parts(one) === parts(other);
}

function boxes(racks, geometry) {
  return racks.map((name) => geometry.racks.get(name)).filter((box) => box).map(boxPath).join("");
}

function rootLabel(name, box) {
  return label("name strong on-root", name, box.x + box.width / 2, box.y + box.height / 2, box.width - 8, 13);
}

function numberLabel(number, [x, y]) {
  const width = 8 + 7 * String(number).length;
  return [
    draw("rect", { x: x - width / 2, y: y - 20, width, height: 15, rx: 7.5 }),
    draw("text", { x, y: y - 12.5, "font-size": 11, "text-anchor": "middle", dy: "0.35em" }, String(number)),
  ];
}
