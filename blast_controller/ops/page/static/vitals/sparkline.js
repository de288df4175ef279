/** A small line chart of the last minutes (uPlot). The pointer selects one point. */

import uPlot from "../vendor/uPlot.esm.js";

const HEIGHT = 38;

export class Sparkline {
  /** Calls `read(place)` with the index of the point below the pointer, or null. */
  constructor(node, read) {
    this.node = node;
    this.plot = new uPlot(options(node, read), [[], []], node);
    new ResizeObserver(() => this.plot.setSize({ width: node.clientWidth || 60, height: HEIGHT })).observe(node);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.plot.redraw());
  }

  show(times, values) {
    this.plot.setData([times, values]);
  }
}

function options(node, read) {
  const color = () => getComputedStyle(node).getPropertyValue("--accent");
  return {
    width: node.clientWidth || 60,
    height: HEIGHT,
    padding: [4, 2, 2, 2],
    legend: { show: false },
    select: { show: false },
    axes: [{ show: false }, { show: false }],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { y: { range: (plot, min, max) => [0, Math.max(max ?? 0, 1) * 1.1] } },
    series: [{}, { stroke: color, width: 1.5, points: { show: false } }],
    hooks: { setCursor: [(plot) => read(plot.cursor.idx ?? null)] },
  };
}
