/** The details of the selection, rebuilt whenever their rows change and patched into the page. */

import { Refused, get } from "../base/ask.js";
import { byId, make, setAttribute, setText } from "../base/dom.js";
import { requestPaint } from "../base/frames.js";
import { patchChildren } from "../base/patch.js";
import { parted } from "../base/rows.js";
import { Wiring } from "../base/wiring.js";
import { rackDetails, splitterDetails, staticDetails, switchDetails } from "./hardware.js";
import { requestDetails } from "./request.js";
import { treeDetails } from "./tree.js";

const EXPLAINED_AGAIN_MS = 3000;
const TITLES = { request: "Request", tree: "Light tree", rack: "Rack", splitter: "Splitter", switch: "Optical switch", static: "Static tree" };
const MAKERS = {
  request: (name, look) => (look.rows.requests.has(name) ? requestDetails(look.rows.requests.get(name), look) : null),
  tree: (name, look) => (look.rows.trees.has(name) ? treeDetails(look.rows.trees.get(name), look) : null),
  rack: (name, look) => (look.wiring.racks.has(name) ? rackDetails(look.wiring.racks.get(name), look) : null),
  splitter: (name, look) => (look.wiring.splitters.has(name) ? splitterDetails(look.wiring.splitters.get(name), look) : null),
  switch: (name, look) => (look.wiring.switches.includes(name) ? switchDetails(name, look) : null),
  static: (name, look) => staticDetails(name, look),
};

export class DetailsPane {
  constructor(shown, selection, session) {
    Object.assign(this, { shown, selection, session });
    this.explanation = null;
    this.askedAt = -Infinity;
    this.wiring = { fabric: null, found: null };
    this.painter = () => this.paint();
    shown.onChange((names) => this.note(names));
    session.onChange(() => requestPaint(this.painter));
    selection.onChange(() => {
      this.explanation = null;
      this.askedAt = -Infinity;
      byId("details-body").scrollTop = 0;
      requestPaint(this.painter);
    });
    byId("details-close").addEventListener("click", () => selection.clear());
    byId("details-body").addEventListener("click", (event) => this.follow(event));
    // Ages and remaining leases change without events.
    setInterval(() => selection.chosen !== null && requestPaint(this.painter), 1000);
  }

  note(names) {
    const { chosen } = this.selection;
    if (chosen === null) return;
    const isOf = (name) => chosen.kind !== "request" || name === `request/${chosen.name}` || parted(name)[0] === "fabric";
    if (names === null || names.some(isOf)) requestPaint(this.painter);
  }

  follow(event) {
    const target = event.target.closest("[data-kind][data-name]");
    if (target !== null) this.selection.choose(target.dataset.kind, target.dataset.name);
  }

  paint() {
    const { chosen } = this.selection;
    const { rows } = this.shown;
    const isShown = chosen !== null && rows.fabric !== null;
    setAttribute(byId("details"), "hidden", !isShown);
    if (!isShown) return true;
    const body = MAKERS[chosen.kind](chosen.name, this.look());
    const short = chosen.kind === "request" ? chosen.name.slice(chosen.name.indexOf("/") + 1) : chosen.name;
    setText(byId("details-title"), `${TITLES[chosen.kind]} ${short}`);
    patchChildren(byId("details-body"), body ?? [make("p", { class: "faint" }, this.absence())]);
    this.explain(chosen, rows);
    return true;
  }

  absence() {
    return this.shown.past === null ? "It is no longer known." : "It did not exist at this time.";
  }

  look() {
    const { rows, clock, now } = this.shown;
    if (this.wiring.fabric !== rows.fabric) this.wiring = { fabric: rows.fabric, found: new Wiring(rows.fabric) };
    const isPast = this.shown.past !== null;
    const mayAct = this.session.isOperator;
    return { rows, clock, now, wiring: this.wiring.found, mayAct, isPast, explanation: isPast ? null : this.explanation };
  }

  /** Read the explanation of a pending request, at intervals while it is selected. */
  async explain(chosen, rows) {
    const row = chosen.kind === "request" ? rows.requests.get(chosen.name) : undefined;
    const waits = row?.parts.some((part) => part.state === "pending");
    if (!waits || this.shown.past !== null || performance.now() - this.askedAt < EXPLAINED_AGAIN_MS) return;
    this.askedAt = performance.now();
    let found;
    try {
      found = await get("explain", { tenant: row.tenant, key: row.key });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      found = { message: error.message, suggestion: null };
    }
    if (!this.selection.is(chosen.kind, chosen.name)) return;
    this.explanation = found;
    requestPaint(this.painter);
  }
}
