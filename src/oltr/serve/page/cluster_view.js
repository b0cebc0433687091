// One group opened: all its images, all selected at first.
import { about } from "./cluster_card.js";
import { $, h, isPhone } from "./dom.js";
import { picture, thumbnail } from "./pictures.js";
import { look } from "./strip.js";
import { Grid } from "./virtual.js";

const layout = (width) => {
  const gap = 8;
  const columns = Math.max(3, Math.floor((width + gap) / (isPhone() ? 112 : 148)));
  return { columns, gap, height: Math.round((width - gap * (columns - 1)) / columns) };
};

const TOUCH_HINT = "Tap an image to leave it out, tap twice to look at it.";

const build = (id) => h("div", { class: "pick", role: "option", dataset: { id } },
  picture(thumbnail(id), "", { width: 140, height: 140 }));

export class ClusterView {
  ids = [];
  #anchor = null; // the image from which a range goes
  #touched = false;

  constructor(selection) {
    if (matchMedia("(pointer: coarse)").matches) $("cluster-hint").textContent = TOUCH_HINT;
    this.selection = selection;
    this.grid = new Grid($("cluster-images"), {
      layout, build, roving: true, key: (id) => id,
      fill: (node, id, index) => {
        node.setAttribute("aria-selected", selection.has(id));
        node.setAttribute("aria-label", `Image ${index + 1}`);
      },
      moved: (from, to, event) => { if (event.shiftKey) this.#range(to); else this.#anchor = this.ids[to]; },
    });
    const box = this.grid.box;
    const indexOf = (event) => this.ids.indexOf(event.target.closest(".pick")?.dataset.id);
    box.addEventListener("click", (event) => {
      const index = indexOf(event);
      if (index < 0) return;
      this.grid.focus(index, { scroll: false });
      if (event.shiftKey) this.#range(index);
      else this.#toggle(index);
    });
    box.addEventListener("dblclick", (event) => {
      const index = indexOf(event);
      if (index >= 0) look(this.ids, index);
    });
    box.addEventListener("keydown", (event) => {
      if (event.key === " ") { event.preventDefault(); this.#toggle(this.grid.current); }
      if (event.key === "Enter") { event.preventDefault(); look(this.ids, this.grid.current); }
    });
    $("select-all").addEventListener("click", () => this.#all(true));
    $("select-none").addEventListener("click", () => this.#all(false));
    selection.addEventListener("change", () => this.draw());
  }

  open(cluster, grouping) {
    this.number = cluster.number;
    this.grouping = grouping;
    this.ids = cluster.images;
    this.cluster = cluster;
    this.grid.current = 0;
    this.#anchor = cluster.images[0];
    this.#touched = this.selection.count(this.ids) > 0;
    if (!this.#touched) this.selection.set(this.ids, true);
    this.draw(false);
  }

  /** Looked at and left as it was: nothing stays selected. */
  close() {
    if (!this.#touched) this.selection.set(this.ids, false);
    this.number = null;
    this.ids = [];
  }

  update(ids) {
    this.ids = ids;
    this.draw();
  }

  draw(keepPlace = true) {
    if (!this.number) return;
    $("cluster-title").textContent = about({ ...this.cluster, size: this.ids.length });
    this.grid.show(this.ids, { keepPlace });
  }

  #toggle(index) {
    this.#anchor = this.ids[index];
    this.#touched = true;
    this.selection.set([this.ids[index]], !this.selection.has(this.ids[index]));
  }

  /** As the first one is, so all to the last; the last alone where the first one has gone. */
  #range(to) {
    const from = this.ids.indexOf(this.#anchor);
    if (from < 0) { this.#toggle(to); return; }
    this.#touched = true;
    this.selection.set(this.ids.slice(Math.min(from, to), Math.max(from, to) + 1), this.selection.has(this.ids[from]));
  }

  #all(on) {
    this.#touched = true;
    this.selection.set(this.ids, on);
  }
}
