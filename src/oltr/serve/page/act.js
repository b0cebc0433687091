// Everything that changes labels: done, shown as what changed, and able to go back.
import { get, post, remove } from "./api.js";
import { hideChanged, showChanged } from "./changed.js";
import { ask, confirmed } from "./dialog.js";
import { h, images, quoted } from "./dom.js";
import { asMine, by, forget, lastOfMine } from "./people.js";
import { refresh } from "./state.js";
import { problem, toast } from "./toast.js";
import { sentence } from "./wording.js";

const labelling = [];
/** Whether this page is just naming or rejecting an image: then its going is no news. */
export const isLabelling = (id) => labelling.some((ids) => ids.includes(id));

async function act(path, body) {
  const ids = body.images ?? [];
  labelling.push(ids);
  try {
    const answer = await asMine(() => post(path, { ...body, by: by() }));
    await refresh();
    return answer;
  } finally {
    labelling.splice(labelling.indexOf(ids), 1);
  }
}

/** Gives images a name; errors are the caller's, who still has what was typed. */
export async function giveName(name, ids, more) {
  const answer = await act("add-class", { name, images: ids, more });
  showChanged({ ...answer, title: `${images(answer.images)} named ${quoted(answer.name)}`, undo: answer.action });
  return answer;
}

export async function reject(ids) {
  try {
    const { action } = await act("reject", { images: ids });
    toast(`${images(ids.length)} rejected.`, ["Undo", () => undo(action)]);
    return true;
  } catch (error) {
    if (error.status !== 409) { problem(error); return false; }
    const taken = new Set(error.conflicts.map(({ id }) => id));
    const others = ids.filter((id) => !taken.has(id));
    await refresh();
    if (!others.length) { toast("These images were labelled by somebody else meanwhile."); return false; }
    const text = h("p", {}, `${images(taken.size)} of ${ids.length} were labelled by somebody else meanwhile.`);
    const choices = [["Leave it", null], [`Reject the other ${images(others.length)}`, true, "main"]];
    return await ask("Labelled meanwhile", text, choices, "conflict") ? reject(others) : false;
  }
}

export async function changeClass(path, body, title) {
  try {
    const answer = await act(path, body);
    showChanged({ ...answer, title, undo: answer.action });
    return true;
  } catch (error) {
    problem(error);
    return false;
  }
}

/** Undoes an action; where later ones build on it, offers to undo them first. Gives true when it no longer holds. */
export async function undo(action) {
  try {
    const answer = await act("undo", { action });
    const title = answer.name ? `Undone: ${quoted(answer.name)}` : "Undone";
    if (answer.changed) showChanged({ ...answer, title, undo: null });
    else { hideChanged(); toast(`${title}.`); }
    return true;
  } catch (error) {
    if (error.status !== 409 || !error.conflicts.length) {
      // A service that is away or busy can still undo it in a moment.
      if (error.status === 404 || error.status === 409) forget(action);
      problem(error);
      return false;
    }
    const undone = error.conflicts.find(({ reason, kind }) => (reason ?? (kind === "undo" ? "undone" : "")) === "undone");
    return undone ? wasUndone(action, undone) : undoAfter(error.conflicts, action, error.message);
  }
}

async function wasUndone(action, { by: who }) {
  hideChanged();
  forget(action);
  toast(who ? `${who} undid it already.` : "It was undone already.");
  await refresh();
  return true;
}

/** Undoes the later actions that build on one, once somebody has seen whose they are, and then the one itself. */
async function undoAfter(conflicts, action, message) {
  const later = [...conflicts].sort((a, b) => b.action - a.action);
  const { actions } = await get("history").catch(() => ({ actions: [] }));
  const whole = (each) => actions.find(({ id }) => id === each.action) ?? each;
  const list = h("ul", {}, later.map((each) => h("li", {}, `${each.action}: ${sentence(whole(each))}`)));
  const all = await ask("Later actions build on this one", [h("p", {}, message), list],
    [["Leave it", null], [`Undo all ${later.length + 1}`, true, "main"]], "conflict");
  if (!all) return false;
  for (const each of later) if (!await undo(each.action)) return false;
  return undo(action);
}

/** The last thing done on this page or, after asking, by anybody. */
export async function undoLast() {
  const own = lastOfMine();
  if (own) return undo(own);
  const text = "It may be somebody else's. History lists them all.";
  return await confirmed("Undo the last action?", text, "Undo it") && undo(null);
}

export async function deleteImages(path, query, text) {
  if (!await confirmed("Delete?", text, "Delete")) return false;
  try {
    const { deleted = 1 } = await remove(path, query);
    toast(`${images(deleted)} deleted.`);
    await refresh();
    return true;
  } catch (error) {
    problem(error);
    await refresh();
    return false;
  }
}
