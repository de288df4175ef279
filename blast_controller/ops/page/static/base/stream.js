/** The server's event stream. The page reconnects by itself, not the browser, so that it can check the reason first. */

const AGAIN_MS = 500;
/** The server sends an event at least every 15 s; a connection that is silent for longer is broken. */
const SILENT_MS = 40_000;

export class Stream {
  /** `listener` has the functions whole, changes, vitals and goodbye, each with the data sent, connected and lost. */
  constructor(listener) {
    this.listener = listener;
    this.source = null;
    this.timer = null;
    this.lastEventAt = 0;
    this.watch = setInterval(() => this.lookForSilence(), 5_000);
  }

  start() {
    this.stop();
    const source = new EventSource("stream");
    this.source = source;
    this.lastEventAt = performance.now();
    for (const name of ["whole", "changes", "vitals", "goodbye"]) {
      source.addEventListener(name, (event) => {
        this.lastEventAt = performance.now();
        this.listener[name](JSON.parse(event.data));
      });
    }
    source.onopen = () => this.listener.connected();
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
    this.listener.lost();
  }

  lookForSilence() {
    if (this.source !== null && performance.now() - this.lastEventAt > SILENT_MS) this.lose();
  }
}
