// The classes known now: for the field that names, for example pictures, for the tab.
import { get, relative } from "./api.js";
import { $, h } from "./dom.js";
import { watch } from "./state.js";

let list = [];
let byName = new Map();
let offered = "";
let asked = 0;
let told = 0;

export const classes = () => list;

/** The class of this name, whatever its capitals. */
export function classNamed(name) {
  const given = name.trim();
  return byName.get(given) || list.find((each) => each.name.toLocaleLowerCase() === given.toLocaleLowerCase()) || null;
}

export const examples = (name, limit) => (byName.get(name)?.examples ?? []).slice(0, limit).map(relative);

export async function loadClasses() {
  const mine = asked += 1;
  const { classes: found } = await get("classes");
  if (mine < told) return; // a later question was answered before this one
  [told, list] = [mine, found];
  byName = new Map(list.map((each) => [each.name, each]));
  const names = [...byName.keys()].sort((a, b) => a.localeCompare(b));
  if (offered !== names.join("\n")) {
    offered = names.join("\n");
    $("class-names").replaceChildren(...names.map((value) => h("option", { value })));
  }
  document.dispatchEvent(new Event("classes"));
}

export const startClassList = () => watch((state, before) => {
  const same = before && state.last_action === before.last_action && state.classes === before.classes;
  if (!same) loadClasses().catch(() => {});
});
