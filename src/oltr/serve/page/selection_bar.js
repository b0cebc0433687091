// The bar of what is selected in a tab, and what can be done with it.
import { button, h } from "./dom.js";

export class SelectionBar {
  /** `name` and `reject` are called with the ids; `id` begins those of the bar's parts. */
  constructor(panel, id, selection, { name, reject }) {
    Object.assign(this, { panel, selection });
    this.text = h("p", { id: `${id}-text`, role: "status" });
    this.buttons = [
      button("Clear", () => selection.clear(), { id: `${id}-clear`, class: "quiet" }),
      button("Reject", () => reject(selection.ids), { id: `${id}-reject` }),
      button("Name…", () => name(selection.ids), { id: `${id}-name`, class: "main" }),
    ];
    this.box = h("div", { id, class: "selection", role: "region", "aria-label": "Selection", hidden: true },
      this.text, h("p", { class: "buttons" }, this.buttons));
    panel.append(this.box);
  }

  draw(text, shown) {
    this.box.hidden = !shown;
    this.text.textContent = text;
    for (const each of this.buttons) each.disabled = !this.selection.size;
    // Notes at the edge make room for the bar that is seen.
    if (!this.panel.hidden) document.body.classList.toggle("with-selection", shown);
  }
}
