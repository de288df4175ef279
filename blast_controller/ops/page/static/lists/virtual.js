/** A long table with only its visible rows in the DOM; arrow keys move, Enter selects. */

import { setAttribute } from "../base/dom.js";
import { requestPaint } from "../base/frames.js";

const ROW = 38;
const HEAD = 28;
const BEYOND = 3;

export class VirtualList {
  /** `makeRow()` returns {node, fill(item)}; `choose(item)` is called for the selected row. */
  constructor(body, { makeRow, choose, keyOf }) {
    this.body = body;
    this.grid = body.closest("[role=grid]");
    this.makeRow = makeRow;
    this.choose = choose;
    this.keyOf = keyOf;
    this.items = [];
    this.rows = [];
    this.active = null;
    this.chosen = null;
    this.painter = () => this.paint();
    this.grid.addEventListener("scroll", () => this.show());
    this.grid.addEventListener("keydown", (event) => this.key(event));
    body.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.show()).observe(this.grid);
  }

  show(items = this.items) {
    this.items = items;
    requestPaint(this.painter);
  }

  paint() {
    this.body.style.height = `${this.items.length * ROW}px`;
    setAttribute(this.grid, "aria-rowcount", this.items.length + 1);
    const first = Math.max(Math.floor(this.grid.scrollTop / ROW) - BEYOND, 0);
    const visible = Math.ceil(this.grid.clientHeight / ROW) + 2 * BEYOND;
    const last = Math.min(first + visible, this.items.length);
    while (this.rows.length < last - first) this.addRow();
    this.rows.forEach((row, place) => this.fill(row, first + place, last));
    return true;
  }

  addRow() {
    const row = this.makeRow();
    row.node.id = `${this.body.id}-row-${this.rows.length}`;
    this.body.append(row.node);
    this.rows.push(row);
  }

  fill(row, place, last) {
    const item = place < last ? this.items[place] : undefined;
    setAttribute(row.node, "hidden", item === undefined);
    row.item = item;
    if (item === undefined) return;
    row.node.style.transform = `translateY(${place * ROW}px)`;
    const key = this.keyOf(item);
    setAttribute(row.node, "aria-rowindex", place + 2);
    setAttribute(row.node, "aria-selected", key === this.chosen ? "true" : "false");
    row.node.classList.toggle("active", key === this.active);
    if (key === this.active) setAttribute(this.grid, "aria-activedescendant", row.node.id);
    row.fill(item);
  }

  /** Mark the selected row and scroll it into view. */
  mark(key) {
    this.chosen = key;
    if (key !== null) this.goTo(this.placeOf(key));
    this.show();
  }

  placeOf(key) {
    return this.items.findIndex((item) => this.keyOf(item) === key);
  }

  goTo(place) {
    if (place < 0 || place >= this.items.length) return;
    this.active = this.keyOf(this.items[place]);
    const [top, height] = [place * ROW, this.grid.clientHeight - HEAD];
    // The body has its new height only after painting.
    this.body.style.height = `${this.items.length * ROW}px`;
    if (top < this.grid.scrollTop) this.grid.scrollTop = top;
    if (top + ROW > this.grid.scrollTop + height) this.grid.scrollTop = top + ROW - height;
    this.show();
  }

  key(event) {
    // Column headers have their own buttons.
    if (event.target !== this.grid) return;
    const page = Math.max(Math.floor((this.grid.clientHeight - HEAD) / ROW) - 1, 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const place = this.placeOf(this.active);
    if (event.key === "Enter" || event.key === " ") {
      if (place >= 0) this.choose(this.items[place]);
    } else if (event.key in steps) {
      this.goTo(Math.min(Math.max(place + steps[event.key], 0), this.items.length - 1));
    } else return;
    event.preventDefault();
  }

  click(event) {
    const node = event.target.closest("[role=row]");
    const row = this.rows.find((one) => one.node === node);
    if (row?.item === undefined) return;
    this.active = this.keyOf(row.item);
    this.choose(row.item);
    this.show();
  }
}
