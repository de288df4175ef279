/** What somebody should look at, as of now: devices that are away, what cannot be used, a controller that does not
 * decide. Told in the head, in the browser tab's title, and aloud when one comes. */

import { byId, make, setAttribute, setText } from "../base/dom.js";
import { wantFrame } from "../base/frames.js";
import { patchChildren } from "../base/patch.js";
import { parted } from "../base/rows.js";
import { count } from "../base/units.js";

const MAX_LISTED = 100;

export class Alarms {
  constructor(shown) {
    this.shown = shown;
    this.vitals = null;
    this.connection = null;
    this.said = new Set();
    this.painter = () => this.paint();
    shown.onChange((names) => {
      if (names === null || names.some((name) => ["unit", "away"].includes(parted(name)[0]))) wantFrame(this.painter);
    });
    byId("alarms-button").addEventListener("click", () => this.open(byId("alarms").hidden));
  }

  take(vitals) {
    this.vitals = vitals;
    wantFrame(this.painter);
  }

  /** A message when the controller does not answer, or null. */
  cutOff(message) {
    this.connection = message;
    wantFrame(this.painter);
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
    this.say(alarms);
    return true;
  }

  say(alarms) {
    const fresh = alarms.filter((message) => !this.said.has(message));
    this.said = new Set(alarms);
    if (fresh.length === 0) return;
    setText(byId("alarms-said"), fresh.length > 3 ? `${fresh.length} new alarms` : fresh.join(" "));
  }

  *all() {
    if (this.connection !== null) yield this.connection;
    if (this.vitals?.storeFault) yield `The journal cannot be written: ${this.vitals.storeFault}`;
    if (this.vitals?.holding) yield this.vitals.holding;
    const { live } = this.shown;
    for (const [device, { reason }] of live.away) yield `${device} is disconnected: ${reason}`;
    for (const elements of live.units.values()) {
      for (const [element, { unusable }] of Object.entries(elements)) if (unusable) yield `${element}: ${unusable}`;
    }
  }
}
