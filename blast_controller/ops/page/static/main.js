/** Composition of the page: creates the parts and connects them. */

import { Refused } from "./base/ask.js";
import { byId, setAttribute, setText } from "./base/dom.js";
import { Selection } from "./base/selection.js";
import { Shown } from "./base/shown.js";
import { Stream } from "./base/stream.js";
import { DetailsPane } from "./details/pane.js";
import { elementsTable } from "./lists/elements.js";
import { requestsTable } from "./lists/requests.js";
import { Tabs } from "./lists/tabs.js";
import { Actions } from "./operator/actions.js";
import { Session } from "./operator/session.js";
import { Connection } from "./operator/connection.js";
import { Colors } from "./picture/colors.js";
import { PicturePanel } from "./picture/panel.js";
import { PictureSource } from "./picture/source.js";
import { TimeBar } from "./time/bar.js";
import { Alarms } from "./vitals/alarms.js";
import { Cards, showCounts } from "./vitals/cards.js";
import { showDraining, showStanding } from "./vitals/standing.js";

const shown = new Shown();
const selection = new Selection();
const session = new Session();
const colors = new Colors(shown);
const alarms = new Alarms(shown);
const cards = new Cards(shown);
const picture = new PicturePanel(shown, selection, colors);
new PictureSource(shown, (layout, wiring) => picture.begin(layout, wiring));
const tables = { requests: requestsTable(shown, selection, colors), elements: elementsTable(shown, selection) };
const tabs = new Tabs(["requests", "elements", "changes"], (name) => tables[name]?.renew());
new DetailsPane(shown, selection, session);
new Actions(session, shown);
const time = new TimeBar(shown, session, () => tabs.open("changes"));
const connection = new Connection(session, alarms);

const stream = new Stream({
  connected: () => connection.opened(),
  lost: () => connection.lost(shown.liveClock),
  whole: ({ rows, clock, release }) => {
    connection.whole(release);
    shown.replaceLive(rows, clock);
    time.look();
  },
  changes: ({ rows, clock }) => shown.changeLive(rows, clock),
  vitals: (vitals) => {
    showStanding(vitals);
    showDraining(vitals.draining);
    showCounts(vitals.counts);
    cards.take(vitals);
    alarms.take(vitals);
    connection.vitals(vitals);
  },
  goodbye: ({ message }) => connection.goodbye(message),
});

session.onChange(() => {
  time.goLive();
  shown.live.clear();
  if (session.isKnown) stream.start();
  else {
    stream.stop();
    shown.notify(null);
    connection.loggedOut();
  }
});

// Escape closes one thing at a time: dialogs (by the browser), then the past, then the selection.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || document.querySelector("dialog[open]") !== null) return;
  if (time.isPast) time.goLive();
  else selection.clear();
});
byId("zoom-in").addEventListener("click", () => picture.camera.zoom(1.25));
byId("zoom-out").addEventListener("click", () => picture.camera.zoom(0.8));
byId("zoom-fit").addEventListener("click", () => picture.camera.fit());
byId("reload").addEventListener("click", () => location.reload());

async function begin() {
  try {
    await session.ask();
    if (!session.isKnown) connection.loggedOut();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    setText(byId("away-banner"), error.message);
    setAttribute(byId("away-banner"), "hidden", false);
    setTimeout(begin, 1000);
  }
}
begin();
