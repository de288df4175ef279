/** The one thing that the reader has chosen, everywhere on the page: {kind, name} or null. Kinds: request, tree, rack,
 * splitter, switch, static. */

export class Selection {
  constructor() {
    this.chosen = null;
    this.listeners = [];
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  choose(kind, name) {
    if (this.is(kind, name)) return;
    this.chosen = { kind, name };
    this.tell();
  }

  clear() {
    if (this.chosen === null) return;
    this.chosen = null;
    this.tell();
  }

  is(kind, name) {
    return this.chosen !== null && this.chosen.kind === kind && this.chosen.name === name;
  }

  tell() {
    for (const listener of this.listeners) listener(this.chosen);
  }
}
