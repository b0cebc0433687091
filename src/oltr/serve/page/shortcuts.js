// Keys for what is done often; never while one types, never with a modifier.
import { ask } from "./dialog.js";
import { $, h, typing } from "./dom.js";

const ONCE = ["n", "r", "u"]; // a key held down must not go on to the next image

const LIST = [
  ["1 2 3 4", "Images, Unknowns, Classes, History"],
  ["j k", "next and previous group, image or class; arrow keys too"],
  ["o", "open the group"],
  ["space", "select or leave out an image; shift with an arrow for a range"],
  ["Enter", "look at the image"],
  ["n", "name the group, the selection or the image"],
  ["r", "reject"],
  ["u", "undo"],
  ["/", "search, or name"],
  ["Esc", "close, go back"],
  ["?", "this list"],
];

function showList() {
  const lines = LIST.map(([keys, what]) => h("div", {},
    h("dt", {}, keys.split(" ").map((key) => h("kbd", {}, key))), h("dd", {}, what)));
  ask("Keys", h("dl", { class: "keys" }, lines), [["Close", true, "main"]], "shortcuts");
}

/** `keysOf()` gives the keys of the tab that is shown; `always` those of the page. A key that answers false goes on. */
export function startShortcuts(keysOf, always) {
  $("help").addEventListener("click", showList);
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]") || (event.repeat && ONCE.includes(event.key))) return;
    if (typing(event.target)) {
      const checkbox = event.target.type === "checkbox";
      if (event.key === "Escape") event.target.blur();
      if (!checkbox) return;
    }
    const does = [keysOf()[event.key], { ...always, "?": showList }[event.key]].filter(Boolean);
    for (const each of does) if (each() !== false) { event.preventDefault(); return; }
  });
}
