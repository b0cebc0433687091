// The tab of unknown images: groups, what to name first at the top; one of them opened; what is selected.
import { isLabelling, reject } from "./act.js";
import { get, post } from "./api.js";
import { build, fill, layout } from "./cluster_card.js";
import { ClusterView } from "./cluster_view.js";
import { $, images, number } from "./dom.js";
import { nameImages } from "./naming.js";
import { Selection } from "./selection.js";
import { SelectionBar } from "./selection_bar.js";
import { refresh, state, watch } from "./state.js";
import { problem, toast } from "./toast.js";
import { Grid } from "./virtual.js";

const MOST_WAITING = 500;
const GROUPING = "Grouping images that look alike…";
const NOTHING = "Nothing unknown. Images that fit no class appear here, in groups that look alike.";
const selection = new Selection();
let grid = null;
let bar = null;
let view = null;
let grouping = null;
let clusters = [];
let opened = null;
let place = 0;

const guess = (ids) => clusters.find((each) => each.images.includes(ids[0]))?.looks_known ?? "";
const open = (cluster) => { place = scrollY; location.hash = `#unknowns/${cluster.number}`; };

/** Back from the open group to all, unless another tab is shown by now. */
const close = () => { if (location.hash.startsWith("#unknowns/")) location.hash = "#unknowns"; };

async function name(ids) {
  if (ids.length && await nameImages(ids, { guess: guess(ids) })) done(ids);
}
async function leaveOut(ids) {
  if (ids.length && await reject(ids)) done(ids);
}
function done(ids) {
  selection.set(ids, false);
  if (opened && !view.ids.length) close();
}

function drawSelection() {
  const ids = selection.ids;
  const where = clusters.filter((each) => selection.count(each.images)).length;
  const text = `${images(ids.length)} selected${where > 1 ? ` in ${where} groups` : ""}`;
  bar.draw(text, ids.length > 0 || opened !== null);
}

function drawLead() {
  const { busy, waiting } = state?.clusters ?? {};
  const groups = clusters.filter((each) => !each.ungrouped);
  const all = groups.reduce((sum, { size }) => sum + size, 0);
  const many = groups.length === 1 ? "one group" : `${number(groups.length)} groups`;
  const lead = `${images(all)} in ${many} of images that look alike. What teaches most is at the top.`;
  $("unknowns-lead").textContent = groups.length ? lead : "";
  $("waiting").hidden = (!busy && !waiting) || (busy && !clusters.length);
  $("waiting").firstElementChild.textContent = busy ? GROUPING : `${images(waiting)} not yet in a group.`;
  $("group-now").hidden = Boolean(busy);
  $("unknowns-empty").hidden = clusters.length > 0;
  $("unknowns-empty").textContent = busy ? GROUPING : NOTHING;
}

/** Images that came since the groups were made, as one more group at the end. */
async function ungrouped({ waiting, busy, clusters: there }) {
  if (!waiting || (busy && !there.length)) return [];
  const offset = there.reduce((sum, each) => sum + each.images.length, 0);
  const { images: found } = await get("unknowns", { offset, limit: Math.min(waiting, MOST_WAITING) });
  const ids = found.filter(({ cluster }) => cluster === null).map(({ id }) => id);
  return ids.length ? [{ number: "new", images: ids, nearest: [], looks_known: "", ungrouped: true }] : [];
}

async function load() {
  const answer = await get("clusters");
  answer.clusters.push(...await ungrouped(answer));
  grouping = answer.number;
  clusters = answer.clusters.map((each) => ({ ...each, size: each.images.length }));
  const there = new Set(clusters.flatMap((each) => each.images));
  const { length: gone } = selection.keepOnly(there).filter((id) => !isLabelling(id));
  if (gone) toast(`${images(gone)} of the selection ${gone === 1 ? "is" : "are"} no longer unknown.`);
  if (opened && view.number) {
    // Grouped anew, a number means another group: the images looked at stay.
    const same = view.grouping === grouping ? clusters.find(({ number: each }) => each === opened) : null;
    const left = same ? same.images : view.ids.filter((id) => there.has(id));
    view.update(left);
    if (!left.length) close();
  }
  grid.show(clusters);
  drawLead();
  drawSelection();
}

function route(rest) {
  if (opened && String(opened) === rest && view.ids.length) { drawSelection(); return; }
  const wanted = clusters.find((each) => String(each.number) === rest);
  if (rest && !wanted) { if (clusters.length) location.replace("#unknowns"); return; }
  if (opened && opened !== wanted?.number) view.close();
  const back = opened && !wanted;
  const left = clusters.findIndex((each) => each.number === opened);
  opened = wanted?.number ?? null;
  $("cluster-list").hidden = Boolean(opened);
  $("cluster-view").hidden = !opened;
  if (wanted && view.number !== wanted.number) {
    view.open(wanted, grouping);
    scrollTo({ top: 0, behavior: "instant" });
    view.grid.focus(0, { scroll: false });
  }
  if (back) {
    if (left >= 0) grid.current = left;
    grid.show(clusters, { keepPlace: false });
    scrollTo({ top: place, behavior: "instant" });
    grid.focus(grid.current, { scroll: false });
  }
  drawSelection();
}

const here = () => (opened ? selection.ids : selection.size ? selection.ids : clusters[grid.current]?.images ?? []);
const step = (by) => {
  const list = opened ? view.grid : grid;
  list.focus(list.box.contains(document.activeElement) ? list.current + by : list.current);
};

export const unknownsTab = {
  start() {
    grid = new Grid($("cluster-grid"), {
      layout, key: ({ number: each }) => each, roving: true, fill: fill(selection),
      build: build({
        open,
        name: (each) => name(each.images),
        reject: (each) => leaveOut(each.images),
        select: (each, on) => selection.set(each.images, on),
      }),
    });
    bar = new SelectionBar($("panel-unknowns"), "selection", selection, { name, reject: leaveOut });
    view = new ClusterView(selection);
    selection.addEventListener("change", () => { if (!opened) grid.show(clusters); drawSelection(); });
    $("cluster-back").addEventListener("click", (event) => { event.preventDefault(); location.hash = "#unknowns"; });
    $("group-now").addEventListener("click", () => post("clusters", {}).then(refresh, problem));
    document.addEventListener("classes", () => { if (clusters.length) grid.show(clusters); });
    watch(drawLead);
  },
  show: (rest) => route(rest),
  hide: () => document.body.classList.remove("with-selection"),
  refresh: load,
  keys: {
    n: () => name(here()),
    "/": () => name(here()),
    r: () => leaveOut(here()),
    j: () => step(1),
    k: () => step(-1),
    o: () => { if (!opened && clusters[grid.current]) open(clusters[grid.current]); },
    Escape: () => {
      if (opened) close();
      else if (selection.size) selection.clear();
      else return false;
      return true;
    },
  },
};
