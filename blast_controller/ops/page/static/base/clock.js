/** The core's clock beside the time of day. `now` and `wall` are of one moment, in seconds. */

export class Clock {
  constructor({ now, wall }) {
    this.now = now;
    this.wall = wall;
    this.heardAt = performance.now();
  }

  /** When a time on the core's clock was, in seconds since 1970. */
  wallOf(time) {
    return this.wall - (this.now - time);
  }

  /** The core's time by now, if the clock goes on. */
  running() {
    return this.now + (performance.now() - this.heardAt) / 1000;
  }
}
