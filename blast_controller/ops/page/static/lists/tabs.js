/** Tabs of the right-hand column (ARIA tabs pattern); arrow keys move between them. */

import { byId, setAttribute } from "../base/dom.js";

export class Tabs {
  /** Calls `opened(name)` whenever another tab opens. */
  constructor(names, opened) {
    this.names = names;
    this.opened = opened;
    this.current = names[0];
    for (const name of names) {
      const tab = byId(`${name}-tab`);
      tab.addEventListener("click", () => this.open(name));
      tab.addEventListener("keydown", (event) => this.key(event, name));
    }
  }

  open(name) {
    this.current = name;
    for (const one of this.names) {
      const isOpen = one === name;
      setAttribute(byId(`${one}-tab`), "aria-selected", isOpen ? "true" : "false");
      setAttribute(byId(`${one}-tab`), "tabindex", isOpen ? null : "-1");
      setAttribute(byId(one), "hidden", !isOpen);
    }
    this.opened(name);
  }

  key(event, name) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const { names } = this;
    const next = names[(names.indexOf(name) + step + names.length) % names.length];
    this.open(next);
    byId(`${next}-tab`).focus();
  }
}
