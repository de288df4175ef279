/** A sign for each state, so that no state is recognizable by color only. */

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
