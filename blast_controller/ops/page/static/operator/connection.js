/** Whether the page hears the controller, and what to do when it does not: a chip in the head, and messages below it. */

import { byId, setAttribute, setText } from "../base/dom.js";
import { timeOfDay } from "../base/units.js";

export class Connection {
  constructor(session, alarms) {
    this.session = session;
    this.alarms = alarms;
    this.release = null;
    this.farewell = null;
  }

  opened() {
    this.chip("connected", "waiting");
  }

  whole(release) {
    this.release ??= release;
    this.farewell = null;
    this.chip("live", "good");
    banner("away-banner", null);
    this.cutOff(null);
    const isOther = release !== this.release;
    setText(byId("upgrade-words"), `The controller runs release ${release} now, and this page is of ${this.release}: reload it, it may not understand all it is told.`);
    setAttribute(byId("upgrade-banner"), "hidden", !isOther);
    // The token that writes carry is another one after a restart.
    this.session.ask().catch(() => {});
  }

  /** Said by the server before it ends, or ends the session. */
  goodbye(message) {
    this.farewell = message;
  }

  lost(clock) {
    this.chip("no controller", "bad");
    const said = this.farewell ? `It said: “${this.farewell}” ` : "";
    const as = clock === null ? "" : ` What is shown is as of ${timeOfDay(clock.wall)}.`;
    const message = `The controller does not answer. ${said}This page tries again by itself twice a second; if that lasts, look whether the controller runs (systemctl status blast).${as}`;
    banner("away-banner", message);
    this.cutOff("The controller does not answer.");
    // It may be the session that has ended, and not the controller.
    this.session.ask().catch(() => {});
  }

  nobody() {
    this.chip("not logged in", "waiting");
    banner("away-banner", null);
    this.cutOff(null);
    const said = this.session.hasExpired ? "Your login is over: log in again. " : "";
    const how = this.session.who.login
      ? "Log in with a token to see the fabric."
      : "This controller does not know you: show it a certificate that it knows, or ask from its own machine.";
    banner("notice-banner", said + how);
    if (this.session.who.login) this.session.openDialog();
  }

  vitals({ leader, draining, holding, storeFault }) {
    const said = [
      holding,
      storeFault && `The journal cannot be written: ${storeFault}`,
      !leader.leads && `This controller stands by${leader.leader ? `: ${leader.leader} leads, ask it for actions` : ""}.`,
      draining && "Draining: no new requests are taken; what is active goes on.",
    ];
    banner("notice-banner", said.filter(Boolean).join(" ") || null);
  }

  cutOff(message) {
    document.body.classList.toggle("cut-off", message !== null);
    this.alarms.cutOff(message);
  }

  chip(words, kind) {
    setText(byId("connection"), words);
    setAttribute(byId("connection"), "data-kind", kind);
  }
}

function banner(id, message) {
  setText(byId(id), message ?? "");
  setAttribute(byId(id), "hidden", message === null);
}
