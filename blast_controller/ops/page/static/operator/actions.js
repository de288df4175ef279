/** Actions of operators: a dialog lists the effects of an action before the operator confirms it. */

import { Refused, get, send } from "../base/ask.js";
import { byId, make, setAttribute, setText } from "../base/dom.js";

const DEEDS = {
  drain: { title: () => "Reject new requests?", button: "Drain" },
  admit: { title: () => "Admit requests again?", button: "Admit again" },
  reconcile: { title: () => "Repair differences on devices?", button: "Repair" },
  quarantine: { title: ({ element }) => `Take ${element} out of use?`, button: "Quarantine", needsReason: true },
  release: { title: ({ element }) => `Release ${element} into use?`, button: "Release" },
  withdraw: { title: ({ key, tenant }) => `Withdraw ${key} of ${tenant}?`, button: "Withdraw" },
};

export class Actions {
  constructor(session, shown) {
    this.session = session;
    this.shown = shown;
    this.dialog = byId("action");
    this.now = null;
    document.addEventListener("click", (event) => {
      const target = event.target.closest("[data-do]");
      if (target !== null) this.open(target.dataset.do, JSON.parse(target.dataset.given ?? "{}"));
    });
    byId("action-cancel").addEventListener("click", () => this.dialog.close());
    byId("action-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.confirm();
    });
    this.dialog.addEventListener("close", () => (this.now = null));
  }

  async open(name, given) {
    const deed = DEEDS[name];
    const now = { name, given, isDone: false };
    this.now = now;
    setText(byId("action-title"), deed.title(given));
    setText(byId("action-do"), deed.button);
    setText(byId("action-cancel"), "Cancel");
    this.messages(["Reading the effects …"]);
    this.fault(null);
    setAttribute(byId("action-do"), "hidden", false);
    byId("action-do").disabled = true;
    setAttribute(byId("action-reason-label"), "hidden", !deed.needsReason);
    byId("action-reason").value = "";
    if (!this.dialog.open) this.dialog.showModal();
    (deed.needsReason ? byId("action-reason") : byId("action-cancel")).focus();
    await this.foretell(now);
  }

  async foretell(now) {
    try {
      const { messages, possible } = await get(`actions/${now.name}/foretold`, now.given);
      if (this.now !== now) return;
      this.messages(messages);
      byId("action-do").disabled = !possible;
    } catch (error) {
      this.refused(error, now);
    }
  }

  async confirm() {
    const { now } = this;
    if (now === null || byId("action-do").disabled) return;
    const reason = byId("action-reason").value.trim();
    if (DEEDS[now.name].needsReason && !reason) {
      this.fault("Enter a reason; it is shown with the element.");
      byId("action-reason").focus();
      return;
    }
    const given = DEEDS[now.name].needsReason ? { ...now.given, reason } : now.given;
    byId("action-do").disabled = true;
    this.fault(null);
    try {
      const { message } = await send("POST", `actions/${now.name}`, given, this.session.identity.csrf);
      if (this.now === now) this.done(message);
    } catch (error) {
      this.refused(error, now);
      if (this.now === now) byId("action-do").disabled = false;
    }
  }

  done(message) {
    this.messages([message]);
    setAttribute(byId("action-do"), "hidden", true);
    setAttribute(byId("action-reason-label"), "hidden", true);
    setText(byId("action-cancel"), "Close");
    byId("action-cancel").focus();
  }

  refused(error, now) {
    if (!(error instanceof Refused)) throw error;
    if (this.now !== now) return;
    this.messages([]);
    this.fault(error.message);
    // The role may have changed on the server.
    if (error.status === 401 || error.status === 403) this.session.ask().catch(() => {});
  }

  messages(all) {
    byId("action-words").replaceChildren(make("ul", {}, ...all.map((message) => make("li", {}, message))));
  }

  fault(message) {
    setText(byId("action-fault"), message ?? "");
    setAttribute(byId("action-fault"), "hidden", message === null);
  }
}
