// What the service says about itself, asked every two seconds while the page is looked at.
import { get, Offline } from "./api.js";

const EVERY = 2000;
const listeners = new Set();
let timer = 0;
let asking = null;
export let state = null;

/** `listen(state, before)` is called whenever something that a page shows has changed; `before` is null at first. */
export const watch = (listen) => listeners.add(listen);

const told = (each) => JSON.stringify([each?.revision, each?.clusters]);

async function ask() {
  clearTimeout(timer);
  try {
    const now = await get("state");
    const before = state;
    const changed = told(now) !== told(before);
    state = now;
    if (changed) for (const listen of listeners) listen(now, before);
  } catch (error) {
    if (!(error instanceof Offline)) console.error(error);
  } finally {
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(refresh, EVERY);
  }
}

/** Asks at once; while an answer is awaited, once more after it. */
export function refresh() {
  asking = asking ? asking.then(ask, ask) : ask();
  const mine = asking;
  return mine.finally(() => { if (asking === mine) asking = null; });
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
addEventListener("online", refresh);
