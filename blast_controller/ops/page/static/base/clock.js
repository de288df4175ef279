/** Conversion between the core's clock and the time of day. `now` and `wall` are the same moment, in seconds. */

export class Clock {
  constructor({ now, wall }) {
    this.now = now;
    this.wall = wall;
    this.receivedAt = performance.now();
  }

  /** Convert a time of the core's clock to seconds since 1970. */
  wallOf(time) {
    return this.wall - (this.now - time);
  }

  /** Return the present time of the core's clock. */
  running() {
    return this.now + (performance.now() - this.receivedAt) / 1000;
  }
}
