/** State of the connection to the controller: a chip in the header, and banners with instructions when it fails. */

import { byId, setAttribute, setText } from "../base/dom.js";
import { timeOfDay } from "../base/units.js";

export class Connection {
  constructor(session, alarms) {
    this.session = session;
    this.alarms = alarms;
    this.release = null;
    this.lastMessage = null;
  }

  opened() {
    this.chip("connected", "waiting");
  }

  whole(release) {
    this.release ??= release;
    this.lastMessage = null;
    this.chip("live", "good");
    banner("away-banner", null);
    this.cutOff(null);
    const isOther = release !== this.release;
    setText(byId("upgrade-words"), `The controller now runs release ${release}, but this page is from release ${this.release}: reload it.`);
    setAttribute(byId("upgrade-banner"), "hidden", !isOther);
    // The CSRF token changes with a restart of the controller.
    this.session.ask().catch(() => {});
  }

  /** Keep the last message of the server, sent before it stops or ends the session. */
  goodbye(message) {
    this.lastMessage = message;
  }

  lost(clock) {
    this.chip("no controller", "bad");
    const reason = this.lastMessage ? `Its last message: “${this.lastMessage}” ` : "";
    const as = clock === null ? "" : ` The page shows the state of ${timeOfDay(clock.wall)}.`;
    const message = `The controller does not answer. ${reason}This page reconnects automatically. If that fails, check the controller: systemctl status blast-controller.${as}`;
    banner("away-banner", message);
    this.cutOff("The controller does not answer.");
    // An expired session also ends the stream.
    this.session.ask().catch(() => {});
  }

  loggedOut() {
    this.chip("not logged in", "waiting");
    banner("away-banner", null);
    this.cutOff(null);
    const expiry = this.session.hasExpired ? "Your session expired: log in again. " : "";
    const how = this.session.identity.login
      ? "Log in with a token to see the fabric."
      : "This controller does not accept your connection: present a known client certificate, or open the page on the controller's machine.";
    banner("notice-banner", expiry + how);
    if (this.session.identity.login) this.session.openDialog();
  }

  vitals({ leader, draining, safeMode, storeFault }) {
    const messages = [
      safeMode,
      storeFault && `The journal cannot be written: ${storeFault}`,
      !leader.isLeader && `This controller is a standby${leader.leader ? `; the leader is ${leader.leader}. Open the leader's page for actions` : ""}.`,
      draining && "Draining: the controller rejects new requests; active ones continue.",
    ];
    banner("notice-banner", messages.filter(Boolean).join(" ") || null);
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
