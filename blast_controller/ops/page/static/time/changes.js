/** The list of changes between two moments; each entry links to its moment. */

import { Refused, get } from "../base/ask.js";
import { byId, make, setText } from "../base/dom.js";
import { timeOfDay } from "../base/units.js";

export class Changes {
  /** `goTo(wall)` displays a moment. */
  constructor(goTo) {
    this.found = [];
    this.asked = 0;
    byId("changes-list").addEventListener("click", (event) => {
      const target = event.target.closest("[data-wall]");
      if (target !== null) goTo(Number(target.dataset.wall));
    });
    this.clear();
  }

  clear() {
    this.asked += 1;
    this.found = [];
    byId("changes-list").replaceChildren();
    setText(byId("changes-count"), "");
    setText(byId("changes-words"), "Select a moment on the timeline to list the changes since then.");
  }

  /** List the changes between two moments, given in any order. */
  async show(one, other) {
    this.asked += 1;
    const { asked } = this;
    const [from, to] = [Math.min(one, other), Math.max(one, other)];
    let answer;
    try {
      answer = await get("past/changes", { from, to });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (asked === this.asked) setText(byId("changes-words"), error.message);
      return;
    }
    if (asked !== this.asked) return;
    this.found = answer.changes;
    const all = answer.changes.length + answer.more;
    setText(byId("changes-count"), String(all));
    const more = answer.more ? ` This list has the first ${answer.changes.length}: select a shorter range for all.` : "";
    const words = all === 1 ? "One change" : `${all === 0 ? "No" : all} changes`;
    setText(byId("changes-words"), `${words} between ${timeOfDay(from)} and ${timeOfDay(to)}.${more}`);
    byId("changes-list").replaceChildren(...answer.changes.map(entry));
  }

  /** Return the time of the listed change before (-1) or after (1) a moment, or undefined. */
  beside(wall, way) {
    const walls = this.found.map((change) => change.wall);
    return way > 0 ? walls.find((one) => one > wall + 1e-3) : walls.reverse().find((one) => one < wall - 1e-3);
  }
}

function entry({ wall, name, message }) {
  const time = make("button", { type: "button", class: "link", "data-wall": wall, title: `show this moment (${name})` }, timeOfDay(wall));
  return make("li", {}, time, make("span", {}, message));
}
