// The tab of what was done: every action with its way back, the labels as a file, the storage.
import { deleteImages, undo } from "./act.js";
import { get } from "./api.js";
import { showChangesOf } from "./changed.js";
import { $, button, h, images, isPhone, number, size } from "./dom.js";
import { picture, thumbnail } from "./pictures.js";
import { state, watch } from "./state.js";
import { look } from "./strip.js";
import { Grid } from "./virtual.js";
import { sentence, when } from "./wording.js";

const DELETABLE = { known: "recognised", rejected: "rejected", named: "named", unknown: "unknown" };
let grid = null;
let actions = [];

const layout = () => ({ columns: 1, gap: 10, height: isPhone() ? 190 : 84 });

function build(action) {
  let now = action;
  const node = h("article", { class: "card action", tabindex: -1, dataset: { action: action.id, kind: action.kind } },
    h("p", { class: "deed" }, h("span", {}, sentence(action)), h("time", { datetime: action.time, title: action.time }, when(action.time))),
    h("div", { class: "strip" }, (action.examples ?? []).slice(0, 6).map((id, index) => h("button", {
      type: "button", class: "picture", "aria-label": `Look at image ${index + 1}`, onclick: () => look(now.examples, index),
    }, picture(thumbnail(id), "", { width: 52, height: 52 })))),
    h("p", { class: "buttons" }));
  node.update = (latest) => { now = latest; };
  return node;
}

function fill(node, action) {
  node.update(action);
  node.setAttribute("aria-label", `${action.id}: ${sentence(action)}`);
  node.classList.toggle("undone", Boolean(action.undone_by));
  const way = action.kind === "undo" ? null
    : action.undone_by ? h("span", { class: "tag" }, `undone by ${action.undone_by}`)
      : button("Undo", async (event) => { event.target.disabled = true; await undo(action.id); event.target.disabled = false; }, { class: "undo" });
  const focused = node.querySelector(".buttons").contains(document.activeElement);
  const what = action.kind === "reject" ? null : button("What changed", () => showChangesOf(action, sentence(action)), { class: "what" });
  if (node.dataset.way === `${action.undone_by}`) return;
  node.dataset.way = `${action.undone_by}`;
  node.querySelector(".buttons").replaceChildren(...[what, way].filter(Boolean));
  if (focused) node.focus();
}

function drawStorage(now) {
  $("storage-text").textContent = `${images(now.images.total)} take ${size(now.bytes)} of ${size(now.cap)}.`;
  $("storage-used").max = now.cap;
  $("storage-used").value = now.bytes;
  const focused = document.activeElement?.dataset?.status;
  $("storage-buttons").replaceChildren(...Object.entries(DELETABLE).filter(([status]) => now.images[status]).map(([status, word]) => button(
    `Delete ${word} (${number(now.images[status])})`,
    () => deleteImages("images", { status }, `${images(now.images[status])} (${word}) are deleted from the queue. Classes learned from them stay as they are. This cannot be undone.`),
    { dataset: { status } })));
  if (focused) $("storage-buttons").querySelector(`[data-status="${focused}"]`)?.focus();
}

async function load() {
  ({ actions } = await get("history"));
  $("history-empty").hidden = actions.length > 0;
  grid.show(actions);
}

const step = (by) => grid.focus(grid.box.contains(document.activeElement) ? grid.current + by : grid.current);

export const historyTab = {
  start() {
    grid = new Grid($("history-list"), { layout, build, fill, key: ({ id }) => id, roving: true });
    watch(drawStorage);
  },
  show: () => { if (state) grid.draw(); },
  refresh: load,
  keys: {
    j: () => step(1),
    k: () => step(-1),
    u: () => { const action = actions[grid.current]; if (grid.box.contains(document.activeElement) && action && !action.undone_by && action.kind !== "undo") { undo(action.id); return true; } return false; },
  },
};
