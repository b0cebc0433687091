// A line of small pictures.
import { button, h, number } from "./dom.js";
import { picture, thumbnail } from "./pictures.js";

/** Asks for the large view of one image of a list (anything with `length` and `at`). */
export const look = (source, index) => document.dispatchEvent(new CustomEvent("look", { detail: { source, index } }));

/** Pictures of images, each to be looked at; beyond `limit` only their number. */
export function strip(ids, limit = 12) {
  const shown = ids.slice(0, limit);
  const one = (id, index) => button(picture(thumbnail(id)), () => look(ids, index),
    { class: "picture", dataset: { id }, "aria-label": `Look at image ${index + 1}` });
  return h("div", { class: "strip" }, shown.map(one),
    ids.length > limit && h("span", { class: "more" }, `+${number(ids.length - limit)}`));
}
