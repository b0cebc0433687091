// The panel "What changed": answers before and after an action, grouped, with pictures and the way back.
import { get } from "./api.js";
import { $, h, images, number } from "./dom.js";
import { strip } from "./strip.js";
import { announce, problem } from "./toast.js";

let shown = null;
let asked = null; // the action whose changes are awaited; an answer for another comes too late
let undone = async () => {};

function grouped(changes) {
  const groups = new Map();
  for (const change of changes) {
    const key = JSON.stringify([change.before, change.after]);
    if (!groups.has(key)) groups.set(key, { before: change.before, after: change.after, ids: [] });
    groups.get(key).ids.push(change.id);
  }
  return [...groups.values()].sort((a, b) => b.ids.length - a.ids.length);
}

const answer = (name) => h("span", { class: name === "unknown" ? "answer unknown" : "answer" }, name || "nothing");

function section({ before, after, ids }) {
  return h("section", { class: "change", dataset: { before, after } },
    h("h3", {},
      answer(before), h("span", { "aria-hidden": "true" }, " → "), h("span", { class: "hidden" }, " became "), answer(after),
      h("span", { class: "tag" }, number(ids.length))),
    strip(ids));
}

function draw({ title, changed, changes, warnings = [] }) {
  $("changed-title").textContent = title;
  const about = changed
    ? `${images(changed)} of the queue ${changed === 1 ? "has" : "have"} another answer now.`
    : "No answer of the queue changed.";
  $("changed-body").replaceChildren(
    ...warnings.map(({ text, images: ids }) => h("div", { class: "caution" }, h("p", {}, text), ids.length > 0 && strip(ids, 8))),
    h("p", { class: "lead" }, about),
    ...grouped(changes).map(section),
  );
}

/** Shows what an action changed; `undo` is the action to go back from, or null. */
export async function showChanged(result) {
  shown = result;
  asked = null;
  $("changed").hidden = false;
  $("changed").dataset.action = result.action;
  document.body.classList.add("with-panel");
  $("changed-undo").hidden = !result.undo;
  $("changed-body").scrollTop = 0;
  draw(result);
  announce(`${result.title}. ${images(result.changed)} with another answer.`);
  if (result.changed <= result.changes.length) return;
  try {
    const { changes } = await get("changes", { action: result.action });
    if (shown === result) draw({ ...result, changes });
  } catch (error) {
    problem(error);
  }
}

/** What an action of the history changed. */
export async function showChangesOf(action, title) {
  const mine = asked = { action: action.id };
  try {
    const { total, changes } = await get("changes", mine);
    if (asked !== mine) return;
    const undo = action.undone_by || action.kind === "undo" ? null : action.id;
    await showChanged({ action: action.id, title, changed: total, changes, undo });
    $("changed-title").focus();
  } catch (error) {
    problem(error);
  }
}

export function hideChanged() {
  asked = null;
  if ($("changed").hidden) return false;
  shown = null;
  $("changed").hidden = true;
  document.body.classList.remove("with-panel");
  return true;
}

export function startChanged(undo) {
  undone = undo;
  $("changed-close").addEventListener("click", hideChanged);
  $("changed-undo").addEventListener("click", async () => {
    $("changed-undo").disabled = true;
    await undone(shown.undo);
    $("changed-undo").disabled = false;
  });
}
