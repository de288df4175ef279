/** Progress of transfers as their senders report it, without interpolation. */

/** Return the sent share, 0 to 1, or null without a report. */
export function progress(request) {
  const shares = request.parts.map((part) => shareOf(part, request.bytes));
  if (shares.every((share) => share === null)) return null;
  return shares.reduce((sum, share) => sum + (share ?? 0), 0) / shares.length;
}

export function shareOf(part, bytes) {
  if (part.state === "done") return 1;
  if (part.progressBytes === undefined) return null;
  return Math.min(part.progressBytes / bytes, 1);
}

export function percent(share) {
  return share === null ? "–" : `${Math.floor(share * 100)} %`;
}
