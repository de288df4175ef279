/** The steps of a grant compared with Table II of the paper. The paper adds sequential steps; here devices are set up
 * in parallel, so the total is less than the sum of its steps. */

import { draw, make } from "../base/dom.js";
import { block, table } from "./pieces.js";

/** Milliseconds (Table II, INFOCOM 2015). The Thrift call is not a step of a grant. */
const PAPER = [
  ["control algorithm", 8.553, "computeMs"],
  ["OpenFlow rules", 8.711, "openflowMs"],
  ["optical switch", 14.172, "opticalMs"],
  ["total", 33.183, "totalMs"],
];
const PAPER_TITLE =
  "“Blast: Accelerating High-Performance Data Analytics Applications by Optical Multicast”, INFOCOM 2015, Table II; " +
  "its total includes 1.747 ms of Thrift, which is not a step of a grant.";
const WIDTH = 120;
/** Milliseconds at the right end of a bar; longer bars are cut off there. */
const SCALE_MS = 50;

export function tableTwo(timings) {
  const rows = PAPER.map(([step, paper, name]) => {
    const ours = timings[name];
    return [step, ours === undefined ? "not used" : ours.toFixed(2), paper.toFixed(3), meter(ours ?? 0, paper)];
  });
  const note = make("p", { class: "faint", title: PAPER_TITLE }, "bar: here · line: the paper's Table II (INFOCOM 2015)");
  return block("From decision to grant", table(["step", "#here, ms", "#paper, ms", ""], rows), note);
}

function meter(ours, paper) {
  const [width, line] = [ours, paper].map((value) => Math.min(value / SCALE_MS, 1) * (WIDTH - 2) + 1);
  return draw(
    "svg",
    { class: "meter", viewBox: `0 0 ${WIDTH} 14`, preserveAspectRatio: "none", "aria-hidden": "true" },
    draw("rect", { class: "ours", x: 0, y: 3, width: width.toFixed(1), height: 8, rx: 1 }),
    draw("path", { class: "paper", d: `M${line.toFixed(1)} 0v14` }),
  );
}
