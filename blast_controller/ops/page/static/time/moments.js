/** Asks for moments of the past, one at a time: while one is on its way only the latest of further wishes is kept. */

import { Refused, get } from "../base/ask.js";

export class Moments {
  /** `came(wall, answer)` and `failed(message)` are told of what was asked for. */
  constructor(came, failed) {
    this.came = came;
    this.failed = failed;
    this.wanted = null;
    this.asking = false;
  }

  want(wall) {
    this.wanted = wall;
    if (!this.asking) this.ask();
  }

  forget() {
    this.wanted = null;
  }

  async ask() {
    this.asking = true;
    while (this.wanted !== null) {
      const wall = this.wanted;
      try {
        const answer = await get("past/at", { wall });
        // It may have been given up meanwhile.
        if (this.wanted !== null) this.came(wall, answer);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        if (this.wanted !== null) this.failed(error.message);
      }
      if (this.wanted === wall) this.wanted = null;
    }
    this.asking = false;
  }
}
