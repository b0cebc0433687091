// Dialogs that are made when needed and gone when closed.
import { h, button } from "./dom.js";

let numbered = 0;

/** Opens a dialog with a heading; `closed()` is told when it goes, which people cannot make it while it is `busy()`. */
export function openDialog(title, body, { id = null, closed = () => {}, kind = "", busy = () => false } = {}) {
  const heading = `dialog-${numbered += 1}`;
  const dialog = h("dialog", { id, class: kind, "aria-labelledby": heading }, h("h2", { id: heading }, title), body);
  dialog.addEventListener("close", () => { dialog.remove(); closed(); });
  // A press that begins and ends on what lies behind it.
  dialog.addEventListener("pointerdown", (event) => { dialog.dataset.outside = event.target === dialog ? "yes" : ""; });
  dialog.addEventListener("click", (event) => { if (event.target === dialog && dialog.dataset.outside && !busy()) dialog.close(); });
  dialog.addEventListener("cancel", (event) => { if (busy()) event.preventDefault(); });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Asks; `choices` are [label, value, class]. Gives the value chosen, or null where the dialog was closed. */
export function ask(title, body, choices, id = "ask") {
  return new Promise((resolve) => {
    let chosen = null;
    const choose = (value) => { chosen = value; dialog.close(); };
    const buttons = choices.map(([label, value, kind = ""]) => button(label, () => choose(value), { class: kind }));
    const whole = [body, h("p", { class: "buttons end" }, buttons)];
    const dialog = openDialog(title, whole, { id, closed: () => resolve(chosen) });
  });
}

export const confirmed = (title, text, yes) => ask(
  title, h("p", {}, text), [["Cancel", null], [yes, true, "danger"]], "confirm");

/** One short text, or null. */
export function askText(title, label, value, yes) {
  return new Promise((resolve) => {
    let given = null;
    const input = h("input", { value, required: true, maxlength: 200, autocomplete: "off", "aria-label": label });
    const buttons = h("p", { class: "buttons end" }, button("Cancel", () => dialog.close()), h("button", { class: "main" }, yes));
    const form = h("form", {
      onsubmit: (event) => { event.preventDefault(); given = input.value.trim(); dialog.close(); },
    }, input, buttons);
    const dialog = openDialog(title, form, { id: "ask-text", closed: () => resolve(given || null) });
    input.select();
  });
}
