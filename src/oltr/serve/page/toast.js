// Quiet notes at the edge of the page, read out by screen readers.
import { $, h, button } from "./dom.js";

const STAYS = 7000;

/**
 * Shows a note for some seconds, longer while pointed at; `offer` is one thing to do about it: [label, action].
 * Where there are too many, news of others makes room for what answers the person here.
 */
export function toast(text, offer = null, news = false) {
  const box = $("toasts");
  const full = box.childElementCount > 2;
  if (full && news && !box.querySelector(".news")) return;
  const note = h("div", { class: news ? "toast news" : "toast" }, h("span", {}, text));
  let timer = 0;
  const leave = () => {
    note.remove();
    if (!box.childElementCount && box.matches(":popover-open")) box.hidePopover();
  };
  const start = () => { timer = setTimeout(leave, STAYS); };
  if (offer) note.append(button(offer[0], () => { leave(); offer[1](); }));
  note.append(button("×", leave, { class: "quiet", "aria-label": "Close this note" }));
  note.addEventListener("pointerenter", () => clearTimeout(timer));
  note.addEventListener("pointerleave", start);
  note.addEventListener("focusin", () => clearTimeout(timer));
  note.addEventListener("focusout", start);
  if (full) (box.querySelector(".news") ?? box.firstElementChild).remove();
  box.append(note);
  // Shown again, it lies above a dialog that was opened since.
  if (box.showPopover) {
    box.popover = "manual";
    if (box.matches(":popover-open")) box.hidePopover();
    box.showPopover();
  }
  start();
}

/** Says something that the page shows elsewhere to screen readers only. */
export const announce = (text) => { $("live").textContent = text; };

/** What went wrong, in the words of the service. */
export function problem(error) {
  if (error.name !== "AbortError") toast([error.message, error.why, error.hint].filter(Boolean).join(" "));
}
