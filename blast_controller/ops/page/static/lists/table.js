/** A table of one kind of rows with a text filter, a state filter and sortable columns. */

import { byId, setAttribute, setText } from "../base/dom.js";
import { requestPaint } from "../base/frames.js";
import { VirtualList } from "./virtual.js";

export class Table {
  /** `options` has shown, rows(rows), tests and words (filters), orders (sorting), concerns(name), and the list's options. */
  constructor(id, options) {
    this.options = options;
    this.id = id;
    this.order = options.order;
    this.downwards = 1;
    this.stale = true;
    this.list = new VirtualList(byId(`${id}-body`), options);
    this.filter = byId(`${id}-filter`);
    this.choice = byId(`${id}-choice`);
    this.painter = () => this.paint();
    this.filter.addEventListener("input", () => this.renew());
    this.choice.addEventListener("change", () => this.renew());
    this.headers = [...byId(id).querySelectorAll("[data-order]")];
    for (const header of this.headers) header.addEventListener("click", () => this.sortBy(header.dataset.order));
    this.showOrder();
    options.shown.onChange((names) => {
      if (names === null || names.some(options.concerns)) this.renew();
    });
  }

  sortBy(order) {
    this.downwards = order === this.order ? -this.downwards : 1;
    this.order = order;
    this.showOrder();
    this.renew();
  }

  showOrder() {
    for (const header of this.headers) {
      const isOrder = header.dataset.order === this.order;
      const sorted = this.downwards > 0 ? "ascending" : "descending";
      setAttribute(header.closest("[role=columnheader]"), "aria-sort", isOrder ? sorted : "none");
    }
  }

  renew() {
    this.stale = true;
    requestPaint(this.painter);
  }

  paint() {
    // The tab is hidden.
    if (byId(this.id).hidden || !this.stale) return true;
    this.stale = false;
    const { options } = this;
    const all = [...options.rows(options.shown.rows)];
    const found = all.filter(options.tests[this.choice.value]).filter(wordsTest(this.filter.value, options.words));
    const compare = options.orders[this.order];
    found.sort((one, other) => this.downwards * compare(one, other) || ascending(options.keyOf(one), options.keyOf(other)));
    this.list.show(found);
    setText(byId(`${this.id}-count`), found.length === all.length ? `${all.length}` : `${found.length} of ${all.length}`);
    setText(byId(`${this.id}-empty`), all.length === 0 ? options.isEmpty : "No row matches the filter.");
    setAttribute(byId(`${this.id}-empty`), "hidden", found.length > 0);
    return true;
  }
}

function wordsTest(text, words) {
  const terms = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (terms.length === 0) return () => true;
  return (row) => {
    const there = words(row).toLowerCase();
    return terms.every((word) => there.includes(word));
  };
}

function ascending(one, other) {
  return one < other ? -1 : Number(one > other);
}
