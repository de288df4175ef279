/** The timeline: the bar, the displayed moment, and the return to the present. */

import { Refused, get } from "../base/ask.js";
import { byId, make, setAttribute, setText } from "../base/dom.js";
import { duration, timeOfDay } from "../base/units.js";
import { Changes } from "./changes.js";
import { Moments } from "./moments.js";
import { Track } from "./track.js";

const AGAIN_MS = 5000;
const SETTLED_MS = 250;

export class TimeBar {
  /** Calls `entered()` when the page switches from the present to the past. */
  constructor(shown, session, entered) {
    Object.assign(this, { shown, session, entered });
    this.places = { shown: null, mark: null };
    this.track = new Track((handle, wall) => this.move(handle, wall));
    this.changes = new Changes((wall) => this.go(wall));
    this.moments = new Moments((wall, answer) => this.loaded(wall, answer), (message) => this.notify(message));
    this.timer = null;
    this.note = make("p", { class: "note", role: "status", hidden: true });
    this.title = make("span", {}, "drag a handle, or use the arrow keys");
    this.buttons = { back: stepButton("◀", "Previous change"), forth: stepButton("▶", "Next change") };
    this.buttons.back.addEventListener("click", () => this.step(-1));
    this.buttons.forth.addEventListener("click", () => this.step(1));
    const actions = make("div", { class: "actions", role: "group", "aria-label": "Steps" }, this.buttons.back, this.buttons.forth);
    byId("time").append(make("h2", {}, "Timeline", this.title), this.track.node, actions, this.note);
    byId("go-live").addEventListener("click", () => this.goLive());
    setInterval(() => this.look(), AGAIN_MS);
  }

  get isPast() {
    return this.places.shown !== null;
  }

  /** Update the recorded range, except while the past is displayed. */
  async look() {
    if (!this.session.isKnown || this.isPast || document.hidden) return;
    let past;
    try {
      past = await get("past");
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      // The connection banner reports a missing controller.
      if (error.status !== 0) this.notify(error.message);
      return;
    }
    if (this.isPast) return;
    this.notify(past.message);
    const has = past.recording || past.newest > past.oldest;
    setAttribute(this.track.node, "hidden", !has);
    if (has) this.track.show(past);
  }

  notify(message) {
    setText(this.note, message ?? "");
    setAttribute(this.note, "hidden", !message);
  }

  move(handle, wall) {
    if (handle === "mark") {
      this.places.mark = wall;
      this.track.set(this.places);
      this.compareSoon();
    } else this.go(wall);
  }

  go(wall) {
    if (!this.isPast) this.entered();
    this.places.shown = wall;
    this.track.set(this.places);
    this.show();
    this.moments.load(wall);
    this.compareSoon();
  }

  loaded(wall, { clock, rows }) {
    if (!this.isPast) return;
    this.notify(null);
    this.shown.showPast(rows, clock);
    this.show();
  }

  goLive() {
    if (!this.isPast) return;
    this.moments.forget();
    clearTimeout(this.timer);
    this.places = { shown: null, mark: null };
    this.track.set(this.places);
    this.changes.clear();
    this.notify(null);
    this.shown.showLive();
    this.show();
    this.look();
  }

  show() {
    document.body.classList.toggle("in-past", this.isPast);
    setAttribute(byId("past-banner"), "hidden", !this.isPast);
    if (!this.isPast) return;
    const ago = Date.now() / 1000 - this.places.shown;
    const words = `Fabric, requests and elements at ${timeOfDay(this.places.shown)}, ${duration(ago)} ago. The counters show the present.`;
    setText(byId("past-words"), words);
  }

  step(way) {
    const from = this.places.shown ?? this.track.range?.newest;
    const wall = from === undefined ? undefined : this.changes.beside(from, way);
    if (wall !== undefined) this.go(wall);
    else if (!this.isPast && way < 0 && from !== undefined) this.go(from);
  }

  compareSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.changes.show(this.places.shown, this.places.mark ?? this.track.range.newest), SETTLED_MS);
  }
}

function stepButton(sign, label) {
  return make("button", { type: "button", "aria-label": label, title: label }, sign);
}
