// A group of unknown images as a card: a strip of pictures, what it may be, what to do with it.
import { examples } from "./class_list.js";
import { button, h, images, isPhone, percent, quoted } from "./dom.js";
import { picture, thumbnail } from "./pictures.js";

const THUMB = 92;
const GAP = 8;
let perStrip = 12;

export function layout(width) {
  const narrow = isPhone();
  const inside = width - (narrow ? 25 : 35);
  const lines = narrow ? 2 : 1;
  const across = Math.max(1, Math.floor((inside + GAP) / (narrow ? 76 : THUMB + GAP)));
  perStrip = across * lines;
  const side = Math.min(THUMB + 20, (inside - GAP * (across - 1)) / across);
  document.documentElement.style.setProperty("--strip-side", `${side}px`);
  const around = narrow ? 174 : 92; // heading, buttons and padding
  return { columns: 1, gap: narrow ? 14 : 18, height: Math.round(lines * side + (lines - 1) * GAP + around) };
}

/** `does` has open, name, reject and select, each called with the cluster. */
export function build(does) {
  return (cluster) => {
    const node = h("article", { class: "card cluster", dataset: { cluster: cluster.number }, tabindex: -1 });
    let now = cluster;
    node.update = (latest) => { now = latest; };
    const check = h("input", { type: "checkbox", onchange: () => does.select(now, check.checked) });
    const strip = h("div", { class: "strip", "aria-hidden": "true", onclick: () => does.open(now) });
    node.append(
      h("label", { class: "cluster-title" }, check, h("span", { class: "size" })),
      h("p", { class: "near" }),
      strip,
      h("p", { class: "buttons" },
        button("Open", () => does.open(now), { class: "open" }),
        button("Reject", () => does.reject(now), { class: "reject" }),
        button("Name…", () => does.name(now), { class: "main name" })),
    );
    return node;
  };
}

function near(cluster) {
  const example = (name) => examples(name, 1).map((src) => picture(src, `Example of ${name}`, { width: 32, height: 32 }));
  const one = (name) => h("span", { class: "class" }, example(name), h("span", {}, name));
  if (cluster.ungrouped) return ["not in a group yet"];
  if (cluster.looks_known) return ["may be ", one(cluster.looks_known)];
  const names = cluster.nearest.slice(0, 2);
  return names.length ? ["nearest ", ...names.map(({ name }) => one(name))] : [];
}

export function about({ size, ungrouped, looks_known: known }) {
  if (ungrouped) return `${images(size)} not in a group yet`;
  return known ? `${images(size)}, may be ${quoted(known)}` : images(size);
}

export function fill(selection) {
  return (node, cluster, index) => {
    node.update(cluster);
    node.setAttribute("aria-label", `Group ${index + 1}: ${about(cluster)}`);
    const chosen = selection.count(cluster.images);
    const check = node.querySelector("input");
    check.checked = chosen === cluster.images.length;
    check.indeterminate = chosen > 0 && !check.checked;
    node.classList.toggle("selected", chosen > 0);
    node.querySelector(".size").textContent = images(cluster.size) + (check.indeterminate ? `, ${chosen} selected` : "");
    const shown = cluster.images.slice(0, perStrip);
    const strip = node.querySelector(".strip");
    const key = shown.join(" ") + cluster.size;
    if (strip.dataset.shown !== key) {
      strip.dataset.shown = key;
      const rest = cluster.size - shown.length;
      const had = new Map([...strip.querySelectorAll("img")].map((each) => [each.dataset.id, each]));
      strip.replaceChildren(...shown.map((id) => had.get(id) ?? picture(thumbnail(id), "", { "data-id": id })));
      if (rest > 0) strip.append(h("span", { class: "more" }, `+${rest}`));
    }
    const hint = node.querySelector(".near");
    const names = [cluster.looks_known, ...cluster.nearest.map(({ name }) => name)];
    const said = JSON.stringify([names, names.map((name) => examples(name, 1))]);
    if (hint.dataset.said !== said) { hint.dataset.said = said; hint.replaceChildren(...near(cluster)); }
    const shares = cluster.nearest.map(({ name, share }) => `${name}: nearest to ${percent(share)} of the images`);
    hint.title = shares.join("\n");
  };
}
