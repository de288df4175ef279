/** What the page shows: the present as it comes in, or one moment of the past. Listeners are told (names): those that
 * differ from what they drew last, or null when anything may. */

import { Clock } from "./clock.js";
import { Rows } from "./rows.js";

export class Shown {
  constructor() {
    this.live = new Rows();
    this.liveClock = null;
    this.past = null;
    this.listeners = [];
  }

  get rows() {
    return this.past === null ? this.live : this.past.rows;
  }

  /** The core's time of what is shown; of the present it goes on. */
  get now() {
    if (this.past !== null) return this.past.clock.now;
    return this.liveClock === null ? 0 : this.liveClock.running();
  }

  get clock() {
    return this.past === null ? this.liveClock : this.past.clock;
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  replaceLive(rows, clock) {
    this.live.replace(rows);
    this.liveClock = new Clock(clock);
    if (this.past === null) this.tell(null);
  }

  changeLive(changes, clock) {
    this.live.apply(changes);
    this.liveClock = new Clock(clock);
    if (this.past === null) this.tell(Object.keys(changes));
  }

  showPast(rows, clock) {
    const found = new Rows();
    found.replace(rows);
    this.past = { rows: found, clock: new Clock(clock) };
    this.tell(null);
  }

  showLive() {
    if (this.past === null) return;
    this.past = null;
    this.tell(null);
  }

  tell(names) {
    for (const listener of this.listeners) listener(names);
  }
}
