/** The bar: activity over time, gaps of the recording, and two handles, the displayed moment and
 * the moment to compare it with. */

import { draw, make, setAttribute, setText } from "../base/dom.js";
import { timeOfDay } from "../base/units.js";

const HEIGHT = 32;

export class Track {
  /** Calls `moved(handle, wall)` when a handle ("shown", "mark") moves to a time. */
  constructor(moved) {
    this.moved = moved;
    this.range = null;
    this.places = { shown: null, mark: null };
    this.activity = draw("path", { class: "activity" });
    this.gaps = draw("path", { class: "gap" });
    this.span = draw("path", { class: "span" });
    const svg = draw("svg", { preserveAspectRatio: "none", "aria-hidden": "true" }, this.gaps, this.activity, this.span);
    this.svg = svg;
    this.handles = { mark: handle("mark", "Compared moment"), shown: handle("shown", "Displayed moment") };
    this.first = make("span");
    this.last = make("span");
    const ends = make("div", { class: "ends", "aria-hidden": "true" }, this.first, this.last);
    this.node = make("div", { class: "track", hidden: true }, svg, ends, this.handles.mark, this.handles.shown);
    this.node.addEventListener("pointerdown", (event) => this.grab(event));
    for (const [name, node] of Object.entries(this.handles)) node.addEventListener("keydown", (event) => this.key(event, name));
  }

  /** Draw the recorded range with its gaps and activity. */
  show({ oldest, newest, gaps, activity }) {
    this.range = { oldest, newest: Math.max(newest, oldest + 1) };
    const buckets = Math.max(activity.length, 1);
    const peak = Math.max(...activity, 1);
    setAttribute(this.svg, "viewBox", `0 0 ${buckets} ${HEIGHT}`);
    const bars = activity.map((count, place) => [count, place]).filter(([count]) => count > 0);
    // A square root keeps low activity visible beside high activity.
    const bar = ([count, place]) => {
      const height = 3 + (HEIGHT - 5) * Math.sqrt(count / peak);
      return `M${place} ${HEIGHT}v${-height.toFixed(1)}h.8v${height.toFixed(1)}z`;
    };
    setAttribute(this.activity, "d", bars.map(bar).join(""));
    const gap = ([from, to]) => `M${(this.share(from) * buckets).toFixed(2)} 0H${(this.share(to) * buckets).toFixed(2)}V${HEIGHT}H${(this.share(from) * buckets).toFixed(2)}z`;
    setAttribute(this.gaps, "d", gaps.map(gap).join(""));
    this.buckets = buckets;
    setText(this.first, timeOfDay(oldest));
    setText(this.last, `${timeOfDay(newest)}`);
    this.place();
  }

  /** Move the handles; null is the present. */
  set(places) {
    this.places = places;
    this.place();
  }

  place() {
    if (this.range === null) return;
    for (const [name, node] of Object.entries(this.handles)) {
      const wall = this.places[name];
      node.style.left = `${100 * this.share(wall ?? this.range.newest)}%`;
      setAttribute(node, "aria-valuemin", Math.floor(this.range.oldest));
      setAttribute(node, "aria-valuemax", Math.ceil(this.range.newest));
      setAttribute(node, "aria-valuenow", Math.round(wall ?? this.range.newest));
      setAttribute(node, "aria-valuetext", wall === null ? "now" : timeOfDay(wall));
      setAttribute(node, "title", wall === null ? "now" : timeOfDay(wall));
    }
    setAttribute(this.handles.mark, "hidden", this.places.shown === null);
    const [from, to] = [this.places.shown, this.places.mark].map((wall) => this.share(wall ?? this.range.newest) * this.buckets);
    const isSpan = this.places.shown !== null;
    setAttribute(this.span, "d", isSpan ? `M${from.toFixed(2)} 0H${to.toFixed(2)}V${HEIGHT}H${from.toFixed(2)}z` : "");
  }

  share(wall) {
    const { oldest, newest } = this.range;
    return Math.min(Math.max((wall - oldest) / (newest - oldest), 0), 1);
  }

  wallAt(clientX) {
    const room = this.node.getBoundingClientRect();
    const share = Math.min(Math.max((clientX - room.left) / room.width, 0), 1);
    return this.range.oldest + share * (this.range.newest - this.range.oldest);
  }

  grab(event) {
    if (this.range === null || event.button !== 0) return;
    const name = event.target === this.handles.mark ? "mark" : "shown";
    this.handles[name].focus({ preventScroll: true });
    this.moved(name, this.wallAt(event.clientX));
    event.preventDefault();
    const drag = (moved) => this.moved(name, this.wallAt(moved.clientX));
    window.addEventListener("pointermove", drag);
    const drop = () => window.removeEventListener("pointermove", drag);
    window.addEventListener("pointerup", drop, { once: true });
    window.addEventListener("pointercancel", drop, { once: true });
  }

  key(event, name) {
    if (this.range === null) return;
    const { oldest, newest } = this.range;
    const large = Math.max((newest - oldest) / 50, 1);
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -large, PageUp: large, Home: -Infinity, End: Infinity };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const step = steps[event.key] * (event.shiftKey ? 10 : 1);
    this.moved(name, Math.min(Math.max((this.places[name] ?? newest) + step, oldest), newest));
  }
}

function handle(name, label) {
  const attributes = { class: `handle ${name}`, role: "slider", tabindex: "0", "aria-label": label, "aria-orientation": "horizontal" };
  return make("div", attributes);
}
