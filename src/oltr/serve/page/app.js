// The page: tabs by the address's hash, what is shown kept fresh, keys.
import { undo, undoLast } from "./act.js";
import { Offline, onConnection } from "./api.js";
import { hideChanged, startChanged } from "./changed.js";
import { startClassList } from "./class_list.js";
import { classesTab } from "./classes.js";
import { startDetail } from "./detail.js";
import { $, number } from "./dom.js";
import { historyTab } from "./history.js";
import { imagesTab } from "./images.js";
import { startPeople } from "./people.js";
import { startShortcuts } from "./shortcuts.js";
import { refresh, state, watch } from "./state.js";
import { problem } from "./toast.js";
import { unknownsTab } from "./unknowns.js";
import { startUpload } from "./upload.js";

const tabs = { images: imagesTab, unknowns: unknownsTab, classes: classesTab, history: historyTab };
const names = Object.keys(tabs);
const stale = new Set(names);
const places = {};
let shown = null;
let freshening = false;

/** `#unknowns/3` and `#images?class=red+fox` as parts. */
function where() {
  const [path, query = ""] = location.hash.slice(1).split("?");
  const [name, rest = ""] = path.split("/");
  return { name: tabs[name] ? name : "images", rest, query: new URLSearchParams(query) };
}

/** Asks for what is shown where it is out of date; one after another, or an old answer could come last. */
async function freshen() {
  if (freshening || !state) return;
  freshening = true;
  let name;
  try {
    while (stale.delete(name = where().name)) {
      await tabs[name].refresh();
      const { name: now, rest, query } = where(); // somebody may have gone elsewhere meanwhile
      if (now === name && shown === name) tabs[name].show(rest, query);
    }
  } catch (error) {
    stale.add(name);
    if (error.status) problem(error);
    else if (!(error instanceof Offline)) console.error(error);
  } finally {
    freshening = false;
  }
}

function go() {
  const { name, rest, query } = where();
  if (shown !== name) {
    if (shown) { places[shown] = scrollY; tabs[shown].hide?.(); hideChanged(); }
    for (const each of names) {
      $(`panel-${each}`).hidden = each !== name;
      $(`tab-${each}`).setAttribute("aria-selected", each === name);
      $(`tab-${each}`).tabIndex = each === name ? 0 : -1;
    }
  }
  const other = shown !== name;
  shown = name;
  tabs[name].show(rest, query);
  if (other) scrollTo({ top: places[name] ?? 0, behavior: "instant" });
  freshen();
}

function header(now) {
  $("run").textContent = now.run;
  $("run").title = `model ${now.model}, ${now.method}\n${now.path}`;
  document.title = `${now.run} · oltr`;
  const { total: images, unknown: unknowns } = now.images;
  const counts = { images, unknowns, classes: now.classes, history: now.last_action };
  for (const [name, count] of Object.entries(counts)) $(`count-${name}`).textContent = count ? number(count) : "";
}

function tabKeys(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  event.stopPropagation();
  const next = names[(names.indexOf(shown) + step + names.length) % names.length];
  location.hash = `#${next}`;
  $(`tab-${next}`).focus();
}

for (const tab of Object.values(tabs)) tab.start();
startPeople();
startClassList();
startUpload();
startDetail();
startChanged(undo);
startShortcuts(() => tabs[shown].keys, {
  ...Object.fromEntries(names.map((name, index) => [String(index + 1), () => { location.hash = `#${name}`; }])),
  u: undoLast,
  Escape: hideChanged,
});
document.querySelector("[role=tablist]").addEventListener("keydown", tabKeys);
$("skip").addEventListener("click", (event) => { event.preventDefault(); $(`panel-${shown}`).focus(); });
onConnection((online) => {
  $("offline").hidden = online;
  // What failed meanwhile is asked again.
  if (online) { names.forEach((name) => stale.add(name)); freshen(); }
});
watch((now) => {
  header(now);
  names.forEach((name) => stale.add(name));
  freshen();
});
addEventListener("hashchange", go);
go();
refresh();
