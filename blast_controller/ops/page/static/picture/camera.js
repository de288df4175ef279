/** Position and zoom of the picture. Wheel, drag and keys move it; until then it fits the panel. */

import { setAttribute } from "../base/dom.js";

const LARGEST = 4;
const STEP = 1.25;
const MARGIN = 8;
/** Minimum scales at which names are legible; names of hosts are smaller. */
const DETAILS = [[0.72, "near"], [0.42, "middle"], [0, "far"]];

export class Camera {
  constructor(panel, world) {
    this.panel = panel;
    this.world = world;
    this.size = { x: 0, y: 0, width: 1, height: 1 };
    this.moved = false;
    Object.assign(this, { x: 0, y: 0, scale: 1 });
    new ResizeObserver(() => (this.moved ? this.apply() : this.fit())).observe(panel);
    panel.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    panel.addEventListener("pointerdown", (event) => this.grab(event));
    panel.addEventListener("keydown", (event) => this.key(event));
  }

  begin(bounds) {
    this.size = bounds;
    this.moved = false;
    this.fit();
  }

  fit() {
    this.moved = false;
    this.scale = Math.min(this.smallest, 1.6);
    this.center();
  }

  get smallest() {
    const room = this.panel.getBoundingClientRect();
    return Math.min((room.width - 2 * MARGIN) / this.size.width, (room.height - 2 * MARGIN) / this.size.height);
  }

  center() {
    const room = this.panel.getBoundingClientRect();
    this.x = room.width / 2 - (this.size.x + this.size.width / 2) * this.scale;
    this.y = room.height / 2 - (this.size.y + this.size.height / 2) * this.scale;
    this.apply();
  }

  apply() {
    this.world.style.transform = `translate(${this.x}px, ${this.y}px) scale(${this.scale})`;
    const [, detail] = DETAILS.find(([minimum]) => this.scale >= minimum);
    setAttribute(this.world, "data-detail", detail);
  }

  /** Convert a position in the window to a point of the picture. */
  pointAt(clientX, clientY) {
    const room = this.panel.getBoundingClientRect();
    return [(clientX - room.left - this.x) / this.scale, (clientY - room.top - this.y) / this.scale];
  }

  zoom(factor, clientX, clientY) {
    const room = this.panel.getBoundingClientRect();
    const [px, py] = [clientX ?? room.left + room.width / 2, clientY ?? room.top + room.height / 2];
    const [x, y] = this.pointAt(px, py);
    this.scale = Math.min(Math.max(this.scale * factor, this.smallest * 0.8), LARGEST);
    this.x = px - room.left - x * this.scale;
    this.y = py - room.top - y * this.scale;
    this.move();
  }

  /** Scroll a box of the picture into view. */
  reveal(box) {
    const room = this.panel.getBoundingClientRect();
    const [left, top] = [box.x * this.scale + this.x, box.y * this.scale + this.y];
    const right = left + box.width * this.scale;
    const bottom = top + box.height * this.scale;
    if (left >= 0 && top >= 0 && right <= room.width && bottom <= room.height) return;
    this.x += room.width / 2 - (left + right) / 2;
    this.y += room.height / 2 - (top + bottom) / 2;
    this.move();
  }

  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.move();
  }

  move() {
    this.moved = true;
    this.apply();
  }

  wheel(event) {
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.clientX, event.clientY);
  }

  grab(event) {
    if (event.button !== 0) return;
    let [x, y] = [event.clientX, event.clientY];
    const drag = (moved) => {
      this.pan(moved.clientX - x, moved.clientY - y);
      [x, y] = [moved.clientX, moved.clientY];
      this.panel.classList.add("dragging");
    };
    const drop = () => {
      window.removeEventListener("pointermove", drag);
      this.panel.classList.remove("dragging");
    };
    window.addEventListener("pointermove", drag);
    window.addEventListener("pointerup", drop, { once: true });
    window.addEventListener("pointercancel", drop, { once: true });
  }

  key(event) {
    const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (steps[event.key]) this.pan(...steps[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(STEP);
    else if (event.key === "-") this.zoom(1 / STEP);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }
}
