/** Colours of requests: eight that differ for every kind of eye; a tree's number tells those of one colour apart. The
 * style sheet has them twice, for light and dark. */

const COLOURS = 8;

export class Colours {
  constructor() {
    this.given = new Map();
    this.users = new Array(COLOURS).fill(0);
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
