/** Drawing in animation frames: painters run in the next frame and stop when its time budget is used up, so that the
 * page stays responsive under load. A painter is a function (mayGoOn) that returns true when it is done. */

const SHARE_MS = 10;

const painters = new Set();
let isRequested = false;

export function requestPaint(painter) {
  painters.add(painter);
  schedule();
}

function schedule() {
  if (isRequested) return;
  isRequested = true;
  requestAnimationFrame(paint);
}

function paint() {
  isRequested = false;
  const end = performance.now() + SHARE_MS;
  const mayGoOn = () => performance.now() < end;
  for (const painter of [...painters]) {
    // Every painter makes progress, so that the first cannot starve the last.
    painters.delete(painter);
    if (!painter(mayGoOn)) painters.add(painter);
  }
  if (painters.size > 0) schedule();
}
