/** Everything that the server tells of one moment, by the names that it gives it. */

export const KINDS = { request: "requests", tree: "trees", unit: "units", away: "away" };

export class Rows {
  constructor() {
    this.clear();
  }

  clear() {
    this.fabric = null;
    this.warm = null;
    for (const kind of Object.values(KINDS)) this[kind] = new Map();
  }

  replace(rows) {
    this.clear();
    this.apply(rows);
  }

  /** A row that is null is gone. */
  apply(changes) {
    for (const [name, row] of Object.entries(changes)) {
      const [kind, key] = parted(name);
      const rows = this[KINDS[kind]];
      if (rows === undefined) {
        // What a newer server tells of is passed over.
        if (name === "fabric" || name === "warm") this[name] = row;
      } else if (row === null) rows.delete(key);
      else rows.set(key, row);
    }
  }
}

/** A name's kind, and the rest of it. */
export function parted(name) {
  const slash = name.indexOf("/");
  return slash < 0 ? [name, ""] : [name.slice(0, slash), name.slice(slash + 1)];
}
