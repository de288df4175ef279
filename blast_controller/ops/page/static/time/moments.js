/** Reads past moments, one query at a time: of the moments selected meanwhile, only the latest is read. */

import { Refused, get } from "../base/ask.js";

export class Moments {
  /** Calls `loaded(wall, answer)` or `failed(message)` for each moment read. */
  constructor(loaded, failed) {
    this.loaded = loaded;
    this.failed = failed;
    this.target = null;
    this.asking = false;
  }

  load(wall) {
    this.target = wall;
    if (!this.asking) this.ask();
  }

  forget() {
    this.target = null;
  }

  async ask() {
    this.asking = true;
    while (this.target !== null) {
      const wall = this.target;
      try {
        const answer = await get("past/at", { wall });
        // The page may have returned to the present.
        if (this.target !== null) this.loaded(wall, answer);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        if (this.target !== null) this.failed(error.message);
      }
      if (this.target === wall) this.target = null;
    }
    this.asking = false;
  }
}
