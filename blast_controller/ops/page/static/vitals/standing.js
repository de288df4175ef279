/** Chips of the header: leader or standby with its epoch, and drift on devices. */

import { byId, setAttribute, setText } from "../base/dom.js";
import { count, duration } from "../base/units.js";

export function showStanding(vitals) {
  const { isLeader, epoch, leader, staleSeconds } = vitals.leader;
  const behind = staleSeconds === null || staleSeconds === undefined ? "" : `, ${duration(staleSeconds)} behind`;
  const other = leader === null ? "leader unknown" : `leader ${leader}`;
  chip("leader", isLeader ? `leader, epoch ${epoch}` : `standby, ${other}${behind}`, isLeader ? "good" : "warn");
  const { rules, elements } = vitals.drift;
  const drift = [rules && count(rules, "rule"), elements && count(elements, "element")].filter(Boolean);
  chip("drift", drift.length ? `drift: ${drift.join(", ")}` : "no drift", drift.length ? "warn" : "good");
  setAttribute(byId("drift"), "title", "Rules and cross-connects on devices that Blast did not create, as of the latest reads");
}

export function showDraining(draining) {
  setAttribute(byId("drain"), "hidden", draining === true);
  setAttribute(byId("admit"), "hidden", draining !== true);
}

function chip(id, words, kind) {
  const node = byId(id);
  setAttribute(node, "hidden", false);
  setAttribute(node, "data-kind", kind);
  setAttribute(node, "title", words);
  setText(node, words);
}
