/** The counters: four with a line of the last minutes, and the use of the fabric. */

import { byId, make, setAttribute, setText } from "../base/dom.js";
import { requestPaint } from "../base/frames.js";
import { milliseconds, rate, timeOfDay } from "../base/units.js";
import { Sparkline } from "./sparkline.js";

const MAX_POINTS = 600;
/** An optional value is null until there is a first one: its card is hidden until then. */
const LINES = [
  { name: "waiting", label: "pending parts", write: String },
  { name: "trees", label: "light trees", write: String },
  { name: "granted", label: "grants per second", write: String },
  { name: "grantMs", label: "median time to grant", write: milliseconds, isOptional: true },
];

export class Cards {
  constructor(shown) {
    this.shown = shown;
    this.points = [];
    this.cards = LINES.map((line) => this.card(line));
    this.uses = { racks: useCard("racks in use"), splitters: useCard("splitters in use"), rate: useCard("granted rate") };
    const bars = make("div", { class: "card bars" }, ...Object.values(this.uses).map((use) => use.node));
    byId("vitals").append(...this.cards.map((card) => card.node), bars);
    this.painter = () => this.paintUse();
    shown.onChange(() => requestPaint(this.painter));
  }

  card(line) {
    const value = make("p", { class: "value" }, "–");
    const label = make("p", { class: "label" }, line.label);
    const room = make("div", { class: "plot", "aria-hidden": "true" });
    const hidden = line.isOptional === true;
    const node = make("div", { class: "card with-line", hidden }, make("div", {}, value, label), room);
    const card = { node, line, value, label, room, sparkline: null, read: null };
    return card;
  }

  /** The first vitals after `whole` have a history, later ones a point. */
  take({ history, point }) {
    if (history) this.points = history.slice(-MAX_POINTS);
    if (point) this.points.push(point);
    if (this.points.length > MAX_POINTS) this.points.splice(0, this.points.length - MAX_POINTS);
    const times = this.points.map((one) => one.wall);
    for (const card of this.cards) {
      card.sparkline ??= new Sparkline(card.room, (place) => this.read(card, place));
      card.sparkline.show(times, this.points.map((one) => one[card.line.name] ?? null));
      this.update(card);
    }
  }

  read(card, place) {
    card.read = place;
    this.update(card);
  }

  update(card) {
    const { name, isOptional, write } = card.line;
    const latest = this.points.findLast((one) => !isOptional || one[name] != null);
    if (latest !== undefined) setAttribute(card.node, "hidden", false);
    const point = card.read === null ? latest : this.points[card.read];
    const value = point?.[name] ?? null;
    setText(card.value, value === null ? "–" : write(value));
    const isRead = card.read !== null && point !== undefined;
    setText(card.label, isRead ? `at ${timeOfDay(point.wall)}` : card.line.label);
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

function useCard(label) {
  const value = make("p", { class: "value" }, "–");
  const node = make("div", {}, value, make("p", { class: "label" }, label));
  return { node, show: (text) => setText(value, text) };
}

/** Show the server's other counters as the tooltip of the section. */
export function showCounts(counts) {
  const words = Object.entries(counts ?? {}).map(([name, value]) => `${spaced(name)}: ${value}`);
  setAttribute(byId("vitals"), "title", words.join("\n") || null);
}

function spaced(name) {
  return name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
}
