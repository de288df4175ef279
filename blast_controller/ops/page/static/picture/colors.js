/** Colors of requests: eight that color-blind readers can distinguish; numbers distinguish trees of one color. The
 * style sheet has them twice, for light and dark. */

const COLORS = 8;

export class Colors {
  constructor(shown) {
    this.shown = shown;
    this.given = new Map();
    this.users = new Array(COLORS).fill(0);
    shown.onChange((names) => this.note(names));
  }

  /** Must be subscribed before all drawing listeners. */
  note(names) {
    const { trees } = this.shown.rows;
    const touched = names === null ? [...trees.keys()] : names.filter((name) => name.startsWith("tree/")).map((name) => name.slice(5));
    if (names === null || touched.some((number) => !trees.has(number))) this.keep(new Set([...trees.values()].map(requestOf)));
    for (const number of touched) if (trees.has(number)) this.of(requestOf(trees.get(number)));
  }

  /** Return the color of a request, which it keeps while it has trees. */
  of(request) {
    const known = this.given.get(request);
    if (known !== undefined) return known;
    const color = this.users.indexOf(Math.min(...this.users));
    this.given.set(request, color);
    this.users[color] += 1;
    return color;
  }

  /** Free the colors of all other requests. */
  keep(requests) {
    for (const [request, color] of this.given) {
      if (requests.has(request)) continue;
      this.given.delete(request);
      this.users[color] -= 1;
    }
  }

  /** Return the color of a request, or null. */
  seen(request) {
    return this.given.get(request) ?? null;
  }
}

export function requestOf(tree) {
  return `${tree.tenant}/${tree.key}`;
}
