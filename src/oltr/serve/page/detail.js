// One image, large: its answer, the likeliest classes with examples, why; and on to the next.
import { blob, get } from "./api.js";
import { deleteImages, reject } from "./act.js";
import { examples } from "./class_list.js";
import { openDialog } from "./dialog.js";
import { bar, button, h, number, percent, quoted, size } from "./dom.js";
import { nameImages } from "./naming.js";
import { picture } from "./pictures.js";
import { when } from "./wording.js";

export const answerOf = (image) => image.named || (image.status === "rejected" ? "rejected" : image.unknown ? "unknown" : image.label);
export const sureness = (image) => image.calibrated_probability ?? image.probability;

function heading(image) {
  const sure = percent(sureness(image));
  const said = image.unknown ? `The run says unknown; most like ${quoted(image.label)}, ${sure}.` : `The run says ${quoted(image.label)}, ${sure}.`;
  return [
    h("h3", { class: `answer ${answerOf(image)}`, id: "detail-answer" }, answerOf(image)),
    h("p", { class: "lead" }, image.named ? `Named by a person. ${said}` : image.status === "rejected" ? `Rejected by a person. ${said}` : said),
  ];
}

function likeliest(image) {
  const lines = Object.entries(image.top5 ?? {}).map(([name, share]) => h("li", { dataset: { class: name } },
    h("span", { class: "name" }, name), h("span", { class: "value" }, percent(share)), bar(share),
    h("span", { class: "examples" }, examples(name, 4).map((src) => picture(src, `Example of ${name}`)))));
  return h("ol", { class: "likeliest", "aria-label": "Likeliest classes" }, lines);
}

function numbers(image) {
  const facts = [
    ["probability", percent(image.probability)], ["calibrated", percent(image.calibrated_probability)],
    ["unknown score", image.unknown_score?.toFixed(3) ?? "–"], ["reachability", image.reachability?.toFixed(3) ?? "–"],
    ["second class", `${image.second_label} ${percent(image.second_probability)}`],
    ["file", image.name], ["added", when(image.time)], ["size", size(image.bytes)],
  ];
  return h("details", {}, h("summary", {}, "Numbers"),
    h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))));
}

function why(image) {
  const box = h("div", { class: "why" });
  const press = button("Why?", async () => {
    press.disabled = true;
    press.textContent = "Looking…";
    try {
      const address = URL.createObjectURL(await blob(`images/${image.id}/explanation`));
      const drawing = h("img", { alt: `Why: the classes nearest to ${image.name}` });
      drawing.addEventListener("load", () => URL.revokeObjectURL(address));
      drawing.src = address;
      box.replaceChildren(drawing);
    } catch (error) {
      box.replaceChildren(h("p", { class: "lead" }, [error.message, error.why].filter(Boolean).join(" ")), press);
      press.textContent = "Why?";
      press.disabled = false;
    }
  }, { id: "detail-why" });
  box.append(press);
  return box;
}

/** Shows the image at `index` of a list whose items are ids or records. */
export function openDetail(source, index) {
  let at = index;
  let image = null;
  const photo = h("img", { class: "photo", alt: "" });
  const about = h("div", { class: "about" });
  const place = h("span", { class: "place", role: "status" });
  const back = button("‹", () => go(-1), { "aria-label": "Previous image", id: "detail-previous" });
  const on = button("›", () => go(1), { "aria-label": "Next image", id: "detail-next" });
  const dialog = openDialog("", h("div", { class: "detail-body" },
    h("div", { class: "stage" }, photo, h("p", { class: "steps" }, back, place, on)), about), { id: "detail", kind: "detail" });
  const title = dialog.querySelector("h2");
  dialog.append(button("×", () => dialog.close(), { class: "quiet close", "aria-label": "Close" }));

  function go(step) {
    if (at + step < 0 || at + step >= source.length) return;
    at += step;
    show();
  }

  async function show() {
    const item = source.at(at);
    const id = typeof item === "string" ? item : item?.id;
    place.textContent = `${number(at + 1)} of ${number(source.length)}`;
    [back.disabled, on.disabled] = [at <= 0, at >= source.length - 1];
    // A page of the list that is on its way.
    if (!id) { setTimeout(() => { if (dialog.open && !source.at(at)?.id) show(); else if (dialog.open) show(); }, 200); return; }
    photo.src = `images/${id}/picture`;
    dialog.dataset.id = id;
    try {
      const got = await get(`images/${id}`);
      if (dialog.dataset.id === id) draw(got);
    } catch (error) {
      about.replaceChildren(h("p", { class: "lead" }, error.message));
    }
  }

  function draw(got) {
    image = got;
    title.textContent = got.name;
    photo.alt = `${got.name}: ${answerOf(got)}`;
    const open = about.querySelector("details")?.open;
    const labelled = got.status === "named" || got.status === "rejected";
    const does = h("p", { class: "buttons" }, labelled
      ? h("a", { class: "button", href: "#history", onclick: () => dialog.close() }, "Undo in History")
      : [button("Name…", name, { class: "main", id: "detail-name" }), button("Reject", leaveOut, { id: "detail-reject" })],
    button("Delete", forget, { class: "danger", id: "detail-delete" }));
    about.replaceChildren(...heading(got), does, likeliest(got), why(got), numbers(got));
    if (open) about.querySelector("details").open = true;
  }

  async function name() {
    const guess = image.unknown ? "" : image.label;
    if (await nameImages([image.id], { guess })) dialog.close();
  }
  async function leaveOut() { if (await reject([image.id])) after(); }
  async function forget() { if (await deleteImages(`images/${image.id}`, {}, `${image.name} is deleted from the queue. A class learned from it stays as it is.`)) after(); }
  function after() { if (source.length > 1 && at < source.length - 1) go(1); else dialog.close(); }

  dialog.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const labelled = image?.status === "named" || image?.status === "rejected";
    const does = { ArrowLeft: () => go(-1), k: () => go(-1), ArrowRight: () => go(1), j: () => go(1), n: () => image && !labelled && name(), r: () => image && !labelled && leaveOut() }[event.key];
    if (does) { event.preventDefault(); does(); }
  });
  show();
}

export const startDetail = () => document.addEventListener("look", ({ detail }) => openDetail(detail.source, detail.index));
