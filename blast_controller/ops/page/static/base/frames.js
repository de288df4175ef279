/** Who has something to draw is asked to do so in the next frame, and stops when the frame's share is used up: however
 * much comes, the page answers. A painter is a function (mayGoOn) -> whether it is done. */

const SHARE_MS = 10;

const wanted = new Set();
let asked = false;

export function wantFrame(painter) {
  wanted.add(painter);
  ask();
}

function ask() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(paint);
}

function paint() {
  asked = false;
  const end = performance.now() + SHARE_MS;
  const mayGoOn = () => performance.now() < end;
  for (const painter of [...wanted]) {
    // Every painter does something, so that the first of them cannot starve the last.
    wanted.delete(painter);
    if (!painter(mayGoOn)) wanted.add(painter);
  }
  if (wanted.size > 0) ask();
}
