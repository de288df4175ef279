/** Colours of requests: eight that differ for every kind of eye; a tree's number tells those of one colour apart. The
 * style sheet has them twice, for light and dark. */

const COLOURS = 8;

export class Colours {
  constructor(shown) {
    this.shown = shown;
    this.given = new Map();
    this.users = new Array(COLOURS).fill(0);
    shown.onChange((names) => this.note(names));
  }

  /** Must hear of changes before anybody who draws. */
  note(names) {
    const { trees } = this.shown.rows;
    const touched = names === null ? [...trees.keys()] : names.filter((name) => name.startsWith("tree/")).map((name) => name.slice(5));
    if (names === null || touched.some((number) => !trees.has(number))) this.keep(new Set([...trees.values()].map(requestOf)));
    for (const number of touched) if (trees.has(number)) this.of(requestOf(trees.get(number)));
  }

  /** The colour of a request, which it keeps for as long as it has trees. */
  of(request) {
    const known = this.given.get(request);
    if (known !== undefined) return known;
    const colour = this.users.indexOf(Math.min(...this.users));
    this.given.set(request, colour);
    this.users[colour] += 1;
    return colour;
  }

  /** Forget those that are not among these. */
  keep(requests) {
    for (const [request, colour] of this.given) {
      if (requests.has(request)) continue;
      this.given.delete(request);
      this.users[colour] -= 1;
    }
  }

  /** The colour that a request has, or null. */
  seen(request) {
    return this.given.get(request) ?? null;
  }
}

export function requestOf(tree) {
  return `${tree.tenant}/${tree.key}`;
}
