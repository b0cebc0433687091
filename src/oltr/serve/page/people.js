// Who sits here, and what the others do meanwhile.
import { get } from "./api.js";
import { $ } from "./dom.js";
import { watch } from "./state.js";
import { toast } from "./toast.js";
import { sentence } from "./wording.js";

const KEPT = "oltr-by";
const mine = new Set();
const undoable = new Set();
let running = 0;
let seen = null;
let newest = 0;

export const by = () => $("by").value.trim();

/** Runs something that adds an action to the history: one's own is not told as news. */
export async function asMine(work) {
  running += 1;
  try {
    const answer = await work();
    mine.add(answer.action);
    if (answer.undone) undoable.delete(answer.undone);
    else undoable.add(answer.action);
    return answer;
  } finally {
    running -= 1;
    tell();
  }
}

/** The last thing done on this page that holds, or 0. */
export const lastOfMine = () => Math.max(0, ...undoable);
/** Somebody else has undone it already, or it cannot be. */
export const forget = (action) => undoable.delete(action);

async function tell() {
  if (running || seen === null || newest <= seen) return;
  const since = seen;
  const until = newest; // later ones are news of the next time, or one's own that is just being told
  seen = until;
  const { actions } = await get("history").catch(() => ({ actions: [] }));
  const news = actions.filter(({ id }) => id > since && id <= until && !mine.has(id));
  const show = ["History", () => { location.hash = "#history"; }];
  if (news.length > 3) toast(`Others did ${news.length} things meanwhile.`, show, true);
  else news.reverse().forEach((action) => toast(sentence(action), show, true));
}

export function startPeople() {
  const field = $("by");
  try { field.value = localStorage.getItem(KEPT) || ""; } catch { /* not kept then */ }
  field.addEventListener("input", () => {
    try { localStorage.setItem(KEPT, field.value.trim()); } catch { /* not kept then */ }
  });
  watch((state) => {
    newest = state.last_action ?? 0;
    seen ??= newest;
    tell();
  });
}
