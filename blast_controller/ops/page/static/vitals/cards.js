/** The counters: four with a line over the last minutes, and how much of the fabric is in use. */

import { byId, make, setAttribute, setText } from "../base/dom.js";
import { wantFrame } from "../base/frames.js";
import { milliseconds, rate, timeOfDay } from "../base/units.js";
import { Sparkline } from "./sparkline.js";

const MAX_POINTS = 600;
const whole = (value) => (value === null ? "–" : String(value));
const LINES = [
  { name: "waiting", what: "parts waiting for light", write: whole },
  { name: "trees", what: "light trees", write: whole },
  { name: "granted", what: "grants in a second", write: whole },
  { name: "grantMs", what: "request to light, p50", write: (value) => (value === null ? "–" : milliseconds(value)) },
];

export class Cards {
  constructor(shown) {
    this.shown = shown;
    this.points = [];
    this.cards = LINES.map((line) => this.card(line));
    this.uses = { racks: useCard("racks in use"), splitters: useCard("splitters in use"), rate: useCard("granted now") };
    const bars = make("div", { class: "card bars" }, ...Object.values(this.uses).map((use) => use.node));
    byId("vitals").append(...this.cards.map((card) => card.node), bars);
    this.painter = () => this.paintUse();
    shown.onChange(() => wantFrame(this.painter));
  }

  card(line) {
    const value = make("p", { class: "value" }, "–");
    const what = make("p", { class: "what" }, line.what);
    const room = make("div", { class: "plot", "aria-hidden": "true" });
    const node = make("div", { class: "card with-line" }, make("div", {}, value, what), room);
    const card = { node, line, value, what, room, sparkline: null, read: null };
    return card;
  }

  /** The first vitals after `whole` bring a history, later ones a point. */
  take({ history, point }) {
    if (history) this.points = history.slice(-MAX_POINTS);
    if (point) this.points.push(point);
    if (this.points.length > MAX_POINTS) this.points.splice(0, this.points.length - MAX_POINTS);
    const times = this.points.map((one) => one.wall);
    for (const card of this.cards) {
      card.sparkline ??= new Sparkline(card.room, (place) => this.read(card, place));
      card.sparkline.show(times, this.points.map((one) => one[card.line.name] ?? null));
      this.tell(card);
    }
  }

  read(card, place) {
    card.read = place;
    this.tell(card);
  }

  tell(card) {
    const point = this.points[card.read ?? this.points.length - 1];
    setText(card.value, point === undefined ? "–" : card.line.write(point[card.line.name] ?? null));
    const isRead = card.read !== null && point !== undefined;
    setText(card.what, isRead ? `at ${timeOfDay(point.wall)}` : card.line.what);
  }

  paintUse() {
    const rows = this.shown.live;
    if (rows.fabric === null) return true;
    const trees = [...rows.trees.values()];
    const racks = new Set(trees.flatMap((tree) => [tree.rootRack, ...tree.leafRacks]));
    const splitters = new Set(trees.flatMap((tree) => tree.splitters));
    this.uses.racks.show(`${racks.size} / ${rows.fabric.racks.length}`);
    this.uses.splitters.show(`${splitters.size} / ${rows.fabric.splitters.length}`);
    this.uses.rate.show(rate(grantedRate(rows.requests.values())));
    return true;
  }
}

function grantedRate(requests) {
  let sum = 0;
  for (const request of requests) {
    for (const part of request.parts) if (part.state === "active") sum += part.grant?.rateBitsPerSecond ?? 0;
  }
  return sum;
}

function useCard(what) {
  const value = make("p", { class: "value" }, "–");
  const node = make("div", {}, value, make("p", { class: "what" }, what));
  return { node, show: (text) => setText(value, text) };
}

/** What the server counts besides, as words for who points at the fabric's line. */
export function showCounts(counts) {
  const words = Object.entries(counts ?? {}).map(([name, value]) => `${spaced(name)}: ${value}`);
  setAttribute(byId("vitals"), "title", words.join("\n") || null);
}

function spaced(name) {
  return name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
}
