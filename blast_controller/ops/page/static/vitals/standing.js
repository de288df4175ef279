/** Who leads, whether the controller decides, and what differs on devices, as chips of the head. */

import { byId, setAttribute, setText } from "../base/dom.js";
import { count, duration } from "../base/units.js";

export function showStanding(vitals) {
  const { leads, epoch, leader, staleSeconds } = vitals.leader;
  const behind = staleSeconds === null || staleSeconds === undefined ? "" : `, ${duration(staleSeconds)} behind`;
  const other = leader === null ? "nobody is known to lead" : `${leader} leads`;
  chip("leader", leads ? `leads · epoch ${epoch}` : `stands by · ${other}${behind}`, leads ? "good" : "warn");
  const { rules, elements } = vitals.drift;
  const drift = [rules && count(rules, "rule"), elements && count(elements, "element")].filter(Boolean);
  chip("drift", drift.length ? `drift: ${drift.join(", ")}` : "no drift", drift.length ? "warn" : "good");
  setAttribute(byId("drift"), "title", "What devices hold that Blast has not put there, as far as they were looked at");
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
