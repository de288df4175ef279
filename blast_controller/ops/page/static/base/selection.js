/** The selected object, shared by the whole page: {kind, name} or null. Kinds: request, tree, rack,
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
    this.notify();
  }

  clear() {
    if (this.chosen === null) return;
    this.chosen = null;
    this.notify();
  }

  is(kind, name) {
    return this.chosen !== null && this.chosen.kind === kind && this.chosen.name === name;
  }

  notify() {
    for (const listener of this.listeners) listener(this.chosen);
  }
}
