// One image, large: its answer, the likeliest classes with examples, why; and on to the next.
import { blob, get } from "./api.js";
import { deleteImages, reject } from "./act.js";
import { examples } from "./class_list.js";
import { openDialog } from "./dialog.js";
import { bar, button, decimals, h, number, percent, quoted, size } from "./dom.js";
import { nameImages } from "./naming.js";
import { picture } from "./pictures.js";
import { when } from "./wording.js";

export function answerOf({ named, status, unknown, label }) {
  if (named || status === "rejected") return named || status;
  return unknown ? "unknown" : label;
}
export const sureness = (image) => image.calibrated_probability ?? image.probability;

function heading(image) {
  const { calibrated_probability: calibrated, probability } = image;
  const told = calibrated === null ? `probability ${percent(probability)}` : `${percent(calibrated)} sure`;
  const sure = image.unknown ? "" : `, ${told}`;
  const said = `The run says ${image.unknown ? "unknown; most like " : ""}${quoted(image.label)}${sure}.`;
  const person = { named: "Named by a person. ", rejected: "Rejected by a person. " }[image.status] ?? "";
  return [
    h("h3", { class: `answer ${image.status}`, id: "detail-answer" }, answerOf(image)),
    h("p", { class: "lead" }, person + said),
  ];
}

/** Sorted here, for a name that is a number comes first in an object. */
const ranked = ({ top5 }) => Object.entries(top5).sort(([, a], [, b]) => b - a);

/** Bars relative to the first: how the classes compare, and not another word on how sure the run is. */
function likeliest(image) {
  const found = ranked(image);
  const lines = found.map(([name, share]) => h("li", { dataset: { class: name } },
    h("span", { class: "name" }, name), bar(share / found[0][1]),
    h("span", { class: "examples" }, examples(name, 4).map((src) => picture(src, `Example of ${name}`)))));
  return [
    h("h4", { class: "lead", id: "likeliest-title" }, "Compared with other classes"),
    h("ol", { class: "likeliest", "aria-labelledby": "likeliest-title" }, lines)];
}

function numbers(image) {
  const facts = [
    ["sure", percent(image.calibrated_probability)], ["raw probability", percent(image.probability)],
    ["unknown score", decimals(image.unknown_score)], ["reachability", decimals(image.reachability)],
    ["raw, likeliest", ranked(image).map(([name, share]) => `${name} ${percent(share)}`).join(", ")],
    ["file", image.name], ["added", when(image.time)], ["size", size(image.bytes)],
  ];
  return h("details", {}, h("summary", {}, "Numbers"),
    h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))));
}

/** A button that asks for the explanation, a drawing that is shown in `box` if `still()` that image is shown. */
function why(image, box, still) {
  const press = button("Why?", async () => {
    press.disabled = true;
    press.textContent = "Looking…";
    try {
      const address = URL.createObjectURL(await blob(`images/${image.id}/explanation`));
      const drawing = h("img", { alt: `Why: the classes nearest to ${image.name}` });
      drawing.src = address;
      await drawing.decode().finally(() => URL.revokeObjectURL(address));
      if (!still()) return;
      box.replaceChildren(drawing);
      box.scrollIntoView({ block: "nearest" });
    } catch (error) {
      if (!still()) return;
      box.replaceChildren(h("p", { class: "lead", role: "status" }, `${error.message} ${error.why ?? ""}`));
    }
    press.textContent = "Why?";
    press.disabled = false;
  }, { id: "detail-why" });
  return press;
}

/** Shows the image at `index` of a list whose items are ids or records. */
function openDetail(source, index) {
  let at = index;
  let image = null; // the one shown, once the service has told of it
  const busy = new Set(); // images with a question about them under way
  const photo = h("img", { class: "photo", alt: "" });
  const about = h("div", { class: "about" });
  const reason = h("div", { class: "why" });
  const place = h("span", { class: "place", role: "status" });
  const back = button("‹", () => go(-1), { "aria-label": "Previous image", id: "detail-previous" });
  const on = button("›", () => go(1), { "aria-label": "Next image", id: "detail-next" });
  const stage = h("div", { class: "stage" }, photo, h("p", { class: "steps" }, back, place, on));
  const dialog = openDialog("", h("div", { class: "detail-body" }, stage, about, reason), { id: "detail", kind: "detail" });
  const title = dialog.querySelector("h2");
  dialog.append(button("×", () => dialog.close(), { class: "quiet close", "aria-label": "Close" }));

  const idAt = (index) => { const item = source.at(index); return typeof item === "string" ? item : item?.id; };

  /** Images that came or went meanwhile move the place of this one. */
  function settle() {
    const near = [0, -1, 1, -2, 2, -3, 3].find((step) => at + step >= 0 && idAt(at + step) === dialog.dataset.id);
    at += near ?? 0;
  }

  function placed() {
    place.textContent = `${number(at + 1)} of ${number(source.length)}`;
    [back.disabled, on.disabled] = [at <= 0, at >= source.length - 1];
  }

  function go(step) {
    settle();
    if (at + step < 0 || at + step >= source.length) return;
    at += step;
    show();
  }

  async function show() {
    const id = idAt(at);
    placed();
    // A page of the list that is on its way.
    if (!id) { setTimeout(() => { if (dialog.open) show(); }, 200); return; }
    photo.src = `images/${id}/picture`;
    if (dialog.dataset.id !== id) {
      // What is still told and offered is of the image before.
      image = null;
      about.querySelectorAll("button").forEach((each) => { each.disabled = true; });
      reason.replaceChildren();
    }
    dialog.dataset.id = id;
    try {
      const got = await get(`images/${id}`);
      if (dialog.dataset.id === id) draw(got);
    } catch (error) {
      if (dialog.dataset.id !== id) return;
      image = null;
      about.replaceChildren(h("p", { class: "lead" }, error.message));
    }
  }

  function draw(got) {
    image = got;
    title.textContent = got.name;
    photo.alt = `${got.name}: ${answerOf(got)}`;
    const open = about.querySelector("details")?.open;
    const does = labelled()
      ? [h("a", { class: "button", href: "#history", onclick: () => dialog.close() }, "Undo in History")]
      : [button("Name…", name, { class: "main", id: "detail-name" }), button("Reject", leaveOut, { id: "detail-reject" })];
    does.push(why(got, reason, () => dialog.dataset.id === got.id), button("Delete", forget, { class: "danger", id: "detail-delete" }));
    about.replaceChildren(...heading(got), h("p", { class: "buttons" }, does), ...likeliest(got), numbers(got));
    if (open) about.querySelector("details").open = true;
  }

  const labelled = () => image.status === "named" || image.status === "rejected";
  async function name() {
    const guess = image.unknown ? "" : image.label;
    if (await nameImages([image.id], { guess })) dialog.close();
  }
  /** On to the next, wherever the list has it once this one has gone. */
  async function then(work) {
    const { id } = image;
    if (busy.has(id)) return;
    busy.add(id);
    const next = at + 1 < source.length ? idAt(at + 1) : null;
    const done = await work().finally(() => busy.delete(id));
    if (!done || dialog.dataset.id !== id) return;
    if (!next) { dialog.close(); return; }
    at = idAt(at) === next ? at : at + 1;
    show();
  }
  const leaveOut = () => then(() => reject([image.id]));
  const forget = () => then(() => deleteImages(`images/${image.id}`, {},
    `${image.name} is deleted from the queue. A class learned from it stays as it is.`));

  // On the document, for a button that has gone takes the focus with it; not below another dialog.
  const closed = new AbortController();
  dialog.addEventListener("close", () => closed.abort());
  document.addEventListener("keydown", (event) => {
    const top = [...document.querySelectorAll("dialog[open]")].at(-1);
    if (event.ctrlKey || event.altKey || event.metaKey || top !== dialog) return;
    const step = { ArrowLeft: -1, k: -1, ArrowRight: 1, j: 1 }[event.key];
    const does = image && !labelled() && !event.repeat && { n: name, r: leaveOut }[event.key];
    if (!step && !does) return;
    event.preventDefault();
    if (step) go(step);
    else does();
  }, { signal: closed.signal });
  document.addEventListener("listed", () => { settle(); placed(); }, { signal: closed.signal });
  show();
}

export function startDetail() {
  document.addEventListener("look", ({ detail: { source, index } }) => openDetail(source, index));
}
