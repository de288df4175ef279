/** The displayed state: the live present, or one past moment. Listeners receive the names that
 * changed since the last call, or null if any may have. */

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

  /** Return the core's time of the displayed state; it advances in the present. */
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
    if (this.past === null) this.notify(null);
  }

  changeLive(changes, clock) {
    this.live.apply(changes);
    this.liveClock = new Clock(clock);
    if (this.past === null) this.notify(Object.keys(changes));
  }

  showPast(rows, clock) {
    const found = new Rows();
    found.replace(rows);
    this.past = { rows: found, clock: new Clock(clock) };
    this.notify(null);
  }

  showLive() {
    if (this.past === null) return;
    this.past = null;
    this.notify(null);
  }

  notify(names) {
    for (const listener of this.listeners) listener(names);
  }
}
