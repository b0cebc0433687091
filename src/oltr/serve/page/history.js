// The tab of what was done: every action with its way back, the labels as a file, the storage.
import { deleteImages, undo } from "./act.js";
import { get } from "./api.js";
import { showChangesOf } from "./changed.js";
import { $, button, h, images, isPhone, number, size } from "./dom.js";
import { state, watch } from "./state.js";
import { strip } from "./strip.js";
import { Grid } from "./virtual.js";
import { sentence, when } from "./wording.js";

const DELETABLE = { known: "recognised", rejected: "rejected", named: "named", unknown: "unknown" };
let grid = null;
let actions = [];

const layout = () => ({ columns: 1, gap: 10, height: isPhone() ? 190 : 84 });

function build(action) {
  return h("article", { class: "card action", tabindex: -1, dataset: { action: action.id, kind: action.kind } },
    h("p", { class: "deed" },
      h("span", {}, sentence(action)), h("time", { datetime: action.time, title: action.time }, when(action.time))),
    strip(action.examples, 6),
    h("p", { class: "buttons" }));
}

async function undoBy(press, action) {
  press.disabled = true;
  await undo(action.id);
  press.disabled = false;
}

function fill(node, action) {
  node.setAttribute("aria-label", `${action.id}: ${sentence(action)}`);
  node.classList.toggle("undone", Boolean(action.undone_by));
  if (node.dataset.undone === `${action.undone_by}`) return;
  node.dataset.undone = `${action.undone_by}`;
  const buttons = node.querySelector(".buttons");
  const focused = buttons.contains(document.activeElement);
  buttons.replaceChildren();
  if (action.kind !== "reject") buttons.append(button("What changed", () => showChangesOf(action, sentence(action)), { class: "what" }));
  if (action.undone_by) buttons.append(h("span", { class: "tag" }, `undone by ${action.undone_by}`));
  else if (action.kind !== "undo") buttons.append(button("Undo", ({ target }) => undoBy(target, action), { class: "undo" }));
  if (focused) node.focus();
}

function drawStorage(now) {
  $("storage-text").textContent = `${images(now.images.total)} take ${size(now.bytes)} of ${size(now.cap)}.`;
  $("storage-used").max = now.cap;
  $("storage-used").value = now.bytes;
  const focused = document.activeElement?.dataset?.status;
  const there = Object.entries(DELETABLE).filter(([status]) => now.images[status]);
  $("storage-buttons").replaceChildren(...there.map(([status, word]) => {
    const count = now.images[status];
    const text = `${images(count)} (${word}) are deleted from the queue. Classes learned from them stay as they are. `
      + "This cannot be undone.";
    return button(`Delete ${word} (${number(count)})`, () => deleteImages("images", { status, at_most: count }, text), { dataset: { status } });
  }));
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
    u: () => {
      const action = grid.box.contains(document.activeElement) ? actions[grid.current] : null;
      if (!action || action.undone_by || action.kind === "undo") return false;
      undo(action.id);
      return true;
    },
  },
};
