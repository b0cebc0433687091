// Images of a long list selected one by one, in ranges, or all of them; those that people have labelled stay out.
import { reject } from "./act.js";
import { $, images, number } from "./dom.js";
import { nameImages } from "./naming.js";
import { Selection } from "./selection.js";
import { SelectionBar } from "./selection_bar.js";
import { problem, toast } from "./toast.js";

const MOST = 1000; // in one question to the service
const LABELLED = "A person has labelled this image: undo it in History first.";
const free = ({ status }) => status === "known" || status === "unknown";

export class Picking {
  on = false;
  selection = new Selection();
  #anchor = null;

  /** `list()` has `length` and `at(index)`; `load(offset, limit)` gives {total, images}; `changed()` draws. */
  constructor(list, load, changed) {
    Object.assign(this, { list, load, changed });
    this.bar = new SelectionBar($("panel-images"), "image-selection", this.selection, {
      name: async (ids) => { if (await nameImages(ids)) this.selection.set(ids, false); },
      reject: async (ids) => { if (await reject(ids)) this.selection.set(ids, false); },
    });
    this.selection.addEventListener("change", () => this.draw());
    $("pick-images").addEventListener("click", () => this.turn(!this.on));
    $("pick-all").addEventListener("click", () => this.#all());
  }

  turn(on) {
    this.on = on;
    this.clear();
  }

  clear() {
    this.#anchor = null;
    this.selection.clear();
  }

  draw() {
    $("pick-images").setAttribute("aria-pressed", this.on);
    $("pick-images").textContent = this.on ? "Done" : "Select";
    $("pick-all").hidden = !this.on;
    this.bar.draw(`${images(this.selection.size)} selected`, this.on);
    this.changed();
  }

  /** How a card tells whether it is selected. */
  fill(node, image) {
    if (this.on && free(image)) node.setAttribute("aria-pressed", this.selection.has(image.id));
    else node.removeAttribute("aria-pressed");
  }

  click(image, index, event) {
    if (event.shiftKey && this.#anchor) this.range(index, image);
    else if (free(image)) this.#toggle(image, index);
    else toast(LABELLED);
  }

  #toggle({ id }, index) {
    this.#anchor = { id, index };
    this.selection.set([id], !this.selection.has(id));
  }

  /** As the one clicked last is, so all from there to this one. */
  async range(index, image = this.list().at(index)) {
    const [from, list] = [this.#anchor, this.list()];
    if (!from || !image) return;
    const [first, last] = [Math.min(from.index, index), Math.max(from.index, index)];
    const found = await this.#records(first, Math.min(MOST, last - first + 1)).catch(problem);
    if (!found || this.list() !== list) return;
    const ids = found.filter(free).map(({ id }) => id);
    // The list has moved meanwhile: what lies between is another thing now.
    const whole = ids.includes(from.id) && found.some(({ id }) => id === image.id);
    if (whole) this.selection.set(ids, this.selection.has(from.id));
    else if (free(image)) this.#toggle(image, index);
  }

  async #records(first, count) {
    const there = Array.from({ length: count }, (_, step) => this.list().at(first + step));
    return there.every(Boolean) ? there : (await this.load(first, count)).images;
  }

  async #all() {
    const list = this.list();
    try {
      const { total, images: found } = await this.load(0, MOST);
      if (this.list() !== list) return; // another filter by now
      this.selection.set(found.filter(free).map(({ id }) => id), true);
      if (total > MOST) toast(`The first ${number(MOST)} of ${images(total)} are selected.`);
    } catch (error) {
      problem(error);
    }
  }

  /** Gives false where no one is picking, so that a key may mean something else. */
  key(name) {
    if (!this.on) return false;
    if (name === "Escape") { if (this.selection.size) this.clear(); else this.turn(false); }
    else if (this.selection.size) this.bar.buttons[name === "n" ? 2 : 1].click();
    return true;
  }
}
