/** The session of the page with the server: its role, login and logout. */

import { Refused, get, send } from "../base/ask.js";
import { byId, setAttribute, setText } from "../base/dom.js";

const NO_SESSION = { role: null, name: "", tenant: null, csrf: null, login: false, release: "" };

export class Session {
  constructor() {
    this.identity = NO_SESSION;
    this.hasExpired = false;
    this.isLoggingOut = false;
    this.listeners = [];
    this.dialog = byId("log-in-dialog");
    byId("log-in").addEventListener("click", () => this.openDialog());
    byId("log-out").addEventListener("click", () => this.logOut());
    byId("log-in-cancel").addEventListener("click", () => this.dialog.close());
    byId("log-in-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.logIn();
    });
  }

  get isOperator() {
    return this.identity.role === "operator";
  }

  get isKnown() {
    return this.identity.role !== null;
  }

  /** Listeners are called when the name, tenant or role changes. */
  onChange(listener) {
    this.listeners.push(listener);
  }

  /** Raises Refused. */
  async ask() {
    this.become(await get("session"));
  }

  become(identity) {
    // This answer may arrive before the stream's goodbye event: the page detects an expired session itself.
    this.hasExpired = this.isKnown && identity.role === null && !this.isLoggingOut;
    const differs = identity.role !== this.identity.role || identity.name !== this.identity.name || identity.tenant !== this.identity.tenant;
    this.identity = identity;
    this.show();
    if (differs) for (const listener of this.listeners) listener();
  }

  show() {
    const { role, name, tenant, login } = this.identity;
    setText(byId("whoami"), role === null ? "not logged in" : [role, tenant && `tenant ${tenant}`].filter(Boolean).join(" · "));
    setAttribute(byId("whoami"), "title", name);
    setAttribute(byId("looking"), "hidden", role === null || this.isOperator);
    setAttribute(byId("log-in"), "hidden", !login || role === "operator");
    setAttribute(byId("log-out"), "hidden", !login || role === null);
    setAttribute(byId("operator"), "hidden", !this.isOperator);
  }

  openDialog() {
    byId("token").value = "";
    setAttribute(byId("log-in-fault"), "hidden", true);
    if (!this.dialog.open) this.dialog.showModal();
    byId("token").focus();
  }

  async logIn() {
    const button = byId("log-in-do");
    button.disabled = true;
    try {
      this.become(await send("POST", "session", { token: byId("token").value.trim() }));
      this.dialog.close();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      setText(byId("log-in-fault"), error.message);
      setAttribute(byId("log-in-fault"), "hidden", false);
    } finally {
      byId("token").value = "";
      button.disabled = false;
    }
  }

  async logOut() {
    this.isLoggingOut = true;
    try {
      await send("DELETE", "session", undefined, this.identity.csrf);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    } finally {
      await this.ask().catch(() => this.become(NO_SESSION));
      this.isLoggingOut = false;
    }
  }
}
