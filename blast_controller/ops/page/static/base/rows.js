/** The server's rows of one moment, by name. */

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

  /** Apply changed rows; null removes a row. */
  apply(changes) {
    for (const [name, row] of Object.entries(changes)) {
      const [kind, key] = parted(name);
      const rows = this[KINDS[kind]];
      if (rows === undefined) {
        // Ignore kinds of a newer server.
        if (name === "fabric" || name === "warm") this[name] = row;
      } else if (row === null) rows.delete(key);
      else rows.set(key, row);
    }
  }
}

/** Split a name into its kind and the rest. */
export function parted(name) {
  const slash = name.indexOf("/");
  return slash < 0 ? [name, ""] : [name.slice(0, slash), name.slice(slash + 1)];
}
