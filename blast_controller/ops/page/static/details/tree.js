/** The details of a light tree. */

import { make } from "../base/dom.js";
import { block, facts, link, links, table } from "./pieces.js";

const MAX_CIRCUITS = 200;

export function treeDetails(row, { rows }) {
  const request = `${row.tenant}/${row.key}`;
  const known = rows.requests.has(request);
  const circuits = row.crossConnects.slice(0, MAX_CIRCUITS).map(([name, input, output]) => [link("switch", name), `${input}`, `${output}`]);
  return [
    facts([
      ["state", row.state],
      ["request", known ? link("request", request, row.key) : `${row.key} (no longer known)`],
      ["tenant", row.tenant],
      ["part", String(row.part)],
      ["group", row.groupAddress],
      ["root", link("rack", row.rootRack)],
      ["splitters", row.splitters.length ? links("splitter", row.splitters) : null],
      ["leaves", row.leafRacks.length ? links("rack", row.leafRacks) : null],
      ["rules on", row.datapaths.join(", ")],
    ]),
    row.crossConnects.length ? block("Cross-connects", table(["switch", "#input", "#output"], circuits)) : make("p", { class: "faint" }, "No cross-connects: the tree uses no optical switch."),
  ];
}
