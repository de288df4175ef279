/** The details of a request: parameters, grant, progress, and why it is pending. */

import { make } from "../base/dom.js";
import { bytes, count, duration, rate, timeOfDay } from "../base/units.js";
import { percent, shareOf } from "../lists/progress.js";
import { isFinal, sign } from "../lists/states.js";
import { block, deed, facts, link, some, table } from "./pieces.js";
import { tableTwo } from "./table2.js";

export function requestDetails(row, { clock, now, mayAct, explanation, isPast }) {
  const waits = row.parts.some((part) => part.state === "pending");
  const body = [
    facts([
      ["state", `${sign(row.state)} ${row.state} · tenant ${row.tenant}`],
      ["data", `${bytes(row.bytes)} from ${row.sender}`],
      ["to", `${count(row.receivers.length, "receiver")}: ${some(row.receivers)}`],
      ["received", `${timeOfDay(clock.wallOf(row.receivedAt))}, ${duration(now - row.receivedAt)} ${isPast ? "before" : "ago"}`],
      ["parameters", parameters(row).join(" · ")],
    ]),
  ];
  if (mayAct && !isPast && !isFinal(row.state)) {
    body.push(make("p", { class: "line" }, deed("withdraw", "Withdraw…", { tenant: row.tenant, key: row.key })));
  }
  if (waits && explanation) body.push(...explained(explanation));
  for (const part of row.parts) body.push(partBlock(part, row, now));
  return body;
}

function parameters(row) {
  return [
    row.maxBitsPerSecond && `at most ${rate(row.maxBitsPerSecond)}`,
    row.pending_timeout && `pending timeout ${duration(row.pending_timeout)}`,
    row.deadline && `deadline ${duration(row.deadline)}`,
    row.priority && `priority ${row.priority}`,
    row.maySplit && "may split",
    row.mayPause && "may pause",
  ].filter(Boolean);
}

function explained({ message, suggestion }) {
  const change = suggestion ? [make("p", { class: "faint" }, suggestion)] : [];
  return [block("Why it is pending", make("p", { class: "message" }, message), ...change)];
}

function partBlock(part, row, now) {
  const { grant, report } = part;
  const share = shareOf(part, row.bytes);
  const isOnly = row.parts.length === 1;
  const children = [
    facts([
      ["state", isOnly ? null : `${sign(part.state)} ${part.state}`],
      ["receivers", part.receivers && some(part.receivers)],
      ["sent", share === null ? null : `${percent(share)}, ${bytes(part.progressBytes ?? row.bytes)} reported by the sender`],
      ["tree", grant && part.state === "active" ? link("tree", String(grant.reservation)) : null],
      ["group", grant && `${grant.groupAddress}:${grant.groupPort} at ${rate(grant.rateBitsPerSecond)}`],
      ["lease", lease(part, now)],
      ["not yet served", grant?.pendingReceivers && some(grant.pendingReceivers)],
    ]),
  ];
  if (part.reason) children.unshift(make("p", { class: part.state === "failed" ? "message bad" : "message" }, part.reason));
  if (report) children.push(reported(report));
  if (grant) children.push(tableTwo(grant.timings));
  if (grant?.margins) children.push(margins(grant.margins));
  return block(isOnly ? "Grant" : `Part ${part.part}`, ...children);
}

function lease({ state, leaseEndsAt }, now) {
  if (state !== "active" || leaseEndsAt === undefined) return null;
  const left = leaseEndsAt - now;
  return left >= 0 ? `ends in ${duration(left)}` : "expired";
}

function reported(report) {
  return facts([
    ["sent", report.bytesSent === undefined ? null : bytes(report.bytesSent)],
    ["duration", report.duration === undefined ? null : `${report.duration} s`],
    ["repaired", report.repairedBytes === undefined ? null : bytes(report.repairedBytes)],
    ["failed", report.failedReceivers && some(report.failedReceivers)],
  ]);
}

function margins(found) {
  const rows = found.map((margin) => [
    link("rack", margin.rack),
    margin.receivedDbm.toFixed(2),
    margin.sensitivityMarginDb.toFixed(2),
    margin.overloadMarginDb.toFixed(2),
    margin.binding,
  ]);
  return block("Power margins of the leaves", table(["leaf", "#dBm", "#to sensitivity, dB", "#to overload, dB", "binding element"], rows));
}
