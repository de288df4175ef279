/** A table with a filter, a choice of what to show, and columns to sort by, over one kind of rows. */

import { byId, setAttribute, setText } from "../base/dom.js";
import { wantFrame } from "../base/frames.js";
import { VirtualList } from "./virtual.js";

export class Table {
  /** `what` says: shown, rows(rows), tests and words to filter by, orders to sort by, concerns(name), and the list's. */
  constructor(id, what) {
    this.what = what;
    this.id = id;
    this.order = what.order;
    this.downwards = 1;
    this.stale = true;
    this.list = new VirtualList(byId(`${id}-body`), what);
    this.filter = byId(`${id}-filter`);
    this.choice = byId(`${id}-choice`);
    this.painter = () => this.paint();
    this.filter.addEventListener("input", () => this.renew());
    this.choice.addEventListener("change", () => this.renew());
    this.headers = [...byId(id).querySelectorAll("[data-order]")];
    for (const header of this.headers) header.addEventListener("click", () => this.sortBy(header.dataset.order));
    this.showOrder();
    what.shown.onChange((names) => {
      if (names === null || names.some(what.concerns)) this.renew();
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
    wantFrame(this.painter);
  }

  paint() {
    // Nobody sees it.
    if (byId(this.id).hidden || !this.stale) return true;
    this.stale = false;
    const { what } = this;
    const all = [...what.rows(what.shown.rows)];
    const found = all.filter(what.tests[this.choice.value]).filter(wordsTest(this.filter.value, what.words));
    const compare = what.orders[this.order];
    found.sort((one, other) => this.downwards * compare(one, other) || ascending(what.keyOf(one), what.keyOf(other)));
    this.list.show(found);
    setText(byId(`${this.id}-count`), found.length === all.length ? `${all.length}` : `${found.length} of ${all.length}`);
    setText(byId(`${this.id}-empty`), all.length === 0 ? what.isEmpty : "Nothing here has these words.");
    setAttribute(byId(`${this.id}-empty`), "hidden", found.length > 0);
    return true;
  }
}

function wordsTest(text, words) {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return () => true;
  return (row) => {
    const there = words(row).toLowerCase();
    return wanted.every((word) => there.includes(word));
  };
}

function ascending(one, other) {
  return one < other ? -1 : Number(one > other);
}
