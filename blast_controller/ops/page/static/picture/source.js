/** Fetches the layout whenever the fabric changes. */

import { get } from "../base/ask.js";
import { Wiring } from "../base/wiring.js";

const AGAIN_MS = 1000;

export class PictureSource {
  constructor(shown, begin, session) {
    this.shown = shown;
    this.begin = begin;
    this.session = session;
    this.drawn = null;
    this.asking = false;
    shown.onChange((names) => {
      if (names === null || names.includes("fabric")) this.look();
    });
  }

  async look() {
    const { fabric } = this.shown.rows;
    // The row arrives after every reconnection, mostly unchanged.
    const layout = JSON.stringify(fabric);
    if (fabric === null || layout === this.drawn || this.asking) return;
    this.asking = true;
    try {
      this.begin(await get("picture"), new Wiring(fabric));
      this.drawn = layout;
    } catch {
      setTimeout(() => this.look(), AGAIN_MS);
    } finally {
      this.asking = false;
    }
  }
}
