/** The server's events. A connection that ends is made anew by us, so that the reason can be looked for in between. */

const AGAIN_MS = 500;
/** The server says something every 15 s at least once; a connection that is silent for longer has been cut. */
const SILENT_MS = 40_000;

export class Stream {
  /** `told` has functions whole, changes, vitals, goodbye (each of what was sent), connected, and lost. */
  constructor(told) {
    this.told = told;
    this.source = null;
    this.timer = null;
    this.heardAt = 0;
    this.watch = setInterval(() => this.lookForSilence(), 5_000);
  }

  start() {
    this.stop();
    const source = new EventSource("stream");
    this.source = source;
    this.heardAt = performance.now();
    for (const name of ["whole", "changes", "vitals", "goodbye"]) {
      source.addEventListener(name, (event) => {
        this.heardAt = performance.now();
        this.told[name](JSON.parse(event.data));
      });
    }
    source.onopen = () => this.told.connected();
    source.onerror = () => this.lose();
  }

  stop() {
    this.source?.close();
    this.source = null;
    clearTimeout(this.timer);
  }

  lose() {
    this.stop();
    this.timer = setTimeout(() => this.start(), AGAIN_MS);
    this.told.lost();
  }

  lookForSilence() {
    if (this.source !== null && performance.now() - this.heardAt > SILENT_MS) this.lose();
  }
}
