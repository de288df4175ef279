/** Alarms of the present: disconnected devices, unusable elements, a controller in safe mode or with a journal fault.
 * Shown in the header and the title of the browser tab, and announced to screen readers. */

import { byId, make, setAttribute, setText } from "../base/dom.js";
import { requestPaint } from "../base/frames.js";
import { patchChildren } from "../base/patch.js";
import { parted } from "../base/rows.js";
import { count } from "../base/units.js";

const MAX_LISTED = 100;

export class Alarms {
  constructor(shown) {
    this.shown = shown;
    this.vitals = null;
    this.connection = null;
    this.announced = new Set();
    this.painter = () => this.paint();
    shown.onChange((names) => {
      if (names === null || names.some((name) => ["unit", "away"].includes(parted(name)[0]))) requestPaint(this.painter);
    });
    byId("alarms-button").addEventListener("click", () => this.open(byId("alarms").hidden));
  }

  take(vitals) {
    this.vitals = vitals;
    requestPaint(this.painter);
  }

  /** A message when the controller does not answer, or null. */
  cutOff(message) {
    this.connection = message;
    requestPaint(this.painter);
  }

  open(isOpen) {
    setAttribute(byId("alarms"), "hidden", !isOpen);
    setAttribute(byId("alarms-button"), "aria-expanded", isOpen ? "true" : "false");
  }

  paint() {
    const alarms = [...this.all()];
    document.title = alarms.length ? `(${alarms.length}) Blast` : "Blast";
    const button = byId("alarms-button");
    setText(button, alarms.length ? `⚠ ${count(alarms.length, "alarm")}` : "no alarms");
    setAttribute(button, "data-kind", alarms.length ? "bad" : "good");
    setAttribute(button, "disabled", alarms.length === 0);
    const listed = alarms.slice(0, MAX_LISTED).map((message) => make("li", {}, message));
    if (alarms.length > MAX_LISTED) listed.push(make("li", {}, `… and ${alarms.length - MAX_LISTED} more: see Elements.`));
    patchChildren(byId("alarms-list"), listed);
    if (alarms.length === 0) this.open(false);
    this.announce(alarms);
    return true;
  }

  announce(alarms) {
    const fresh = alarms.filter((message) => !this.announced.has(message));
    this.announced = new Set(alarms);
    if (fresh.length === 0) return;
    setText(byId("alarms-announced"), fresh.length > 3 ? `${fresh.length} new alarms` : fresh.join(" "));
  }

  *all() {
    if (this.connection !== null) yield this.connection;
    if (this.vitals?.storeFault) yield `The journal cannot be written: ${this.vitals.storeFault}`;
    if (this.vitals?.safeMode) yield this.vitals.safeMode;
    const { live } = this.shown;
    for (const [device, { reason }] of live.away) yield `${device} is disconnected: ${reason}`;
    for (const elements of live.units.values()) {
      for (const [element, { unusable }] of Object.entries(elements)) if (unusable) yield `${element}: ${unusable}`;
    }
  }
}
