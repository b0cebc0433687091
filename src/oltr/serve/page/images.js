// The tab of all images, newest first.
import { get } from "./api.js";
import { answerOf, sureness } from "./detail.js";
import { $, bar, h, images as counted, isPhone, number, percent } from "./dom.js";
import { Pages } from "./pages.js";
import { Picking } from "./picking.js";
import { picture, thumbnail } from "./pictures.js";
import { state } from "./state.js";
import { look } from "./strip.js";
import { Grid } from "./virtual.js";

const NONE_YET = "No images yet. Each one that you add gets an answer at once "
  + "and is kept with the run until somebody deletes it.";
let grid = null;
let pages = null;
let picking = null;
let filter = { status: "", class: "" };

const layout = (width) => {
  const gap = isPhone() ? 10 : 16;
  const columns = Math.max(2, Math.floor((width + gap) / (isPhone() ? 150 : 190)));
  return { columns, gap, height: Math.round((width - gap * (columns - 1)) / columns) + 54 };
};

function build(image) {
  return h("button", { type: "button", class: "card image", dataset: { id: image.id } },
    picture(thumbnail(image.id), "", { width: 190, height: 190 }),
    h("span", { class: "answer" }), h("span", { class: "sure" }));
}

function fill(node, image, index) {
  const answer = answerOf(image);
  const [, label, sure] = node.children;
  label.textContent = answer;
  label.className = `answer ${image.status}`;
  const share = image.status === "named" ? 1 : sureness(image);
  sure.replaceChildren(image.status === "named" ? "named by a person" : image.unknown ? "" : bar(share));
  node.title = `${image.name}\n${percent(sureness(image))}`;
  node.dataset.status = image.status;
  const sureAs = image.unknown || image.named ? "" : `, ${percent(share)}`;
  node.setAttribute("aria-label", `${image.name}: ${answer}${sureAs}`);
  picking.fill(node, image);
  node.onclick = (event) => {
    // A list that is just being replaced: its images can be looked at, and no longer selected.
    if (!picking.on || grid.items !== pages) { look(grid.items, index); return; }
    grid.focus(index, { scroll: false });
    picking.click(image, index, event);
  };
}

/** A class is the run's answer; among those that people named, the name they gave. */
const load = (offset, limit) => get("images", {
  status: filter.status, offset, limit,
  [filter.status === "named" ? "named" : "label"]: filter.class,
});

function arrived() {
  grid.show(pages);
  document.dispatchEvent(new Event("listed"));
  const { length } = pages;
  const any = filter.status || filter.class;
  $("filter-count").textContent = any && state ? `${number(length)} of ${counted(state.images.total)}` : counted(length);
  $("images-empty").hidden = length > 0;
  $("images-empty").textContent = any ? "No image fits this." : NONE_YET;
  $("filter-clear").hidden = !any;
  $("drop").classList.toggle("small", (state?.images.total ?? 0) > 0);
}

/** A list of its own for each filter: what an earlier one still brings is not shown as this one's. */
function list() {
  const made = new Pages(load, () => { if (made === pages) arrived(); });
  return made;
}

async function refresh() {
  const asked = pages;
  await asked.refresh();
  if (asked === pages) arrived();
}

function filtered(now) {
  filter = now;
  $("filter-status").value = now.status;
  if ($("filter-class").value !== now.class) $("filter-class").value = now.class;
  $("filter-class-kind").textContent = now.status === "named" ? "name" : "answer";
  picking.clear(); // what is no longer seen is not named by mistake
  pages = list();
  refresh();
}

export const imagesTab = {
  start() {
    grid = new Grid($("image-grid"), {
      layout, build, fill, key: ({ id }) => id, roving: true,
      moved: (from, to, event) => { if (picking.on && event.shiftKey) picking.range(to); },
    });
    pages = list();
    picking = new Picking(() => pages, load, () => grid.show(pages));
    // A button would take Enter for a click, and that selects.
    grid.box.addEventListener("keydown", (event) => {
      if (picking.on && event.key === "Enter") { event.preventDefault(); look(grid.items, grid.current); }
    });
    grid.box.addEventListener("dblclick", () => { if (picking.on) look(grid.items, grid.current); });
    const form = $("image-filter");
    const go = () => {
      const asked = { status: $("filter-status").value, class: $("filter-class").value.trim() };
      const query = new URLSearchParams(Object.entries(asked).filter(([, value]) => value));
      location.hash = query.size ? `#images?${query}` : "#images";
    };
    form.addEventListener("submit", (event) => { event.preventDefault(); go(); });
    form.addEventListener("reset", () => setTimeout(go));
    form.addEventListener("change", go);
  },
  show(rest, query) {
    const now = { status: query.get("status") ?? "", class: query.get("class") ?? "" };
    if (now.status !== filter.status || now.class !== filter.class) filtered(now);
    else picking.draw();
  },
  hide: () => document.body.classList.remove("with-selection"),
  refresh,
  keys: {
    "/": () => $("filter-class").focus(),
    j: () => grid.focus(grid.box.contains(document.activeElement) ? grid.current + 1 : 0),
    k: () => grid.focus(grid.current - 1),
    n: () => picking.key("n"),
    r: () => picking.key("r"),
    Escape: () => picking.key("Escape"),
  },
};
