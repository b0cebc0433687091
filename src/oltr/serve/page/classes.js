// The tab of classes: examples, counts, renaming and removing.
import { changeClass } from "./act.js";
import { classes, examples, loadClasses } from "./class_list.js";
import { askText, confirmed } from "./dialog.js";
import { $, button, h, images, number, quoted } from "./dom.js";
import { picture } from "./pictures.js";
import { Grid } from "./virtual.js";

let grid = null;

const layout = (width) => {
  const gap = 16;
  const columns = Math.max(1, Math.floor((width + gap) / 320));
  const side = ((width - gap * (columns - 1)) / columns - 32 - 16) / 3;
  return { columns, gap, height: Math.round(side) + 168 };
};

async function rename({ name }) {
  const to = await askText(`Rename ${quoted(name)}`, "New name", name, "Rename");
  if (to && to !== name) await changeClass("rename-class", { name, to }, `${quoted(name)} renamed to ${quoted(to)}`);
}

async function removeClass({ name, train_count: count }) {
  const text = `The run no longer answers ${quoted(name)} (${images(count)} in training). `
    + "Its images in the queue may become unknown. This can be undone in History.";
  if (!await confirmed(`Remove ${quoted(name)}?`, text, "Remove")) return;
  await changeClass("remove-class", { name }, `${quoted(name)} removed`);
}

function build(one) {
  let now = one;
  const node = h("article", { class: "card class", tabindex: -1, dataset: { class: one.name } },
    h("div", { class: "strip" }), h("h3", {}, one.name), h("p", { class: "lead counts" }), h("p", { class: "buttons" },
      h("a", { class: "button", href: `#images?${new URLSearchParams({ class: one.name })}` }, "Images"),
      button("Rename", () => rename(now)), button("Remove", () => removeClass(now))));
  node.update = (latest) => { now = latest; };
  return node;
}

function fill(node, one) {
  node.update(one);
  node.setAttribute("aria-label", one.name);
  const strip = node.querySelector(".strip");
  const shown = examples(one.name, 3);
  if (strip.dataset.shown !== shown.join()) {
    strip.dataset.shown = shown.join();
    strip.replaceChildren(...shown.map((src) => picture(src)));
    if (!shown.length) strip.append(h("span", { class: "none" }, "no picture kept"));
  }
  const facts = [one.added && "added by people", one.named && `${number(one.named)} named`, `${number(one.recognised)} recognised`];
  node.querySelector(".counts").replaceChildren(
    h("span", { class: `shot ${one.shots}`, title: `${one.shots}-shot` }, `${images(one.train_count)} · ${one.shots}`),
    h("span", {}, facts.filter(Boolean).join(" · ")));
}

function draw() {
  const part = $("class-search").value.trim().toLocaleLowerCase();
  const group = $("class-shots").value;
  const inGroup = (one) => !group || (group === "added" ? one.added : one.shots === group);
  const fits = classes().filter((one) => inGroup(one) && one.name.toLocaleLowerCase().includes(part));
  const all = classes().length;
  $("class-count").textContent = fits.length === all ? `${number(all)} classes` : `${number(fits.length)} of ${number(all)} classes`;
  grid.show(fits);
}

const step = (by) => grid.focus(grid.box.contains(document.activeElement) ? grid.current + by : grid.current);

export const classesTab = {
  start() {
    grid = new Grid($("class-grid"), { layout, build, fill, key: ({ name }) => name, roving: true });
    $("class-filter").addEventListener("submit", (event) => event.preventDefault());
    $("class-filter").addEventListener("input", draw);
    document.addEventListener("classes", draw);
  },
  show: () => grid.draw(),
  refresh: loadClasses,
  keys: { "/": () => $("class-search").focus(), j: () => step(1), k: () => step(-1) },
};
