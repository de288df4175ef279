/** States in a word and a sign, so that no color has to be told apart. */

const SIGNS = {
  pending: "◔", configuring: "◌", active: "●", done: "✓", withdrawn: "⊘", expired: "⧖", failed: "✕",
  free: "○", reserved: "●", probed: "◌", unusable: "✕", disconnected: "⚠",
};

export function sign(state) {
  return SIGNS[state] ?? "·";
}

const FINAL = new Set(["done", "withdrawn", "expired", "failed"]);

export function isFinal(state) {
  return FINAL.has(state);
}
