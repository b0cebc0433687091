// The dialog that names images: a new class or more of one that is known; and what to do when others were quicker.
import { giveName } from "./act.js";
import { classNamed, examples } from "./class_list.js";
import { openDialog } from "./dialog.js";
import { button, h, images, number, quoted } from "./dom.js";
import { picture, thumbnail } from "./pictures.js";
import { refresh } from "./state.js";
import { strip } from "./strip.js";

const SHOWN = 10;

/** Names images; gives true when done. `guess` is a class they may be. */
export function nameImages(ids, { guess = "" } = {}) {
  return new Promise((resolve) => {
    let left = ids;
    let done = false;
    let busy = false;
    const leave = () => { if (!busy) dialog.close(); };
    const input = h("input", {
      id: "name-input", list: "class-names", maxlength: 200, autocomplete: "off", required: true,
      "aria-label": "Name of the class", placeholder: "What is it?",
    });
    const submit = h("button", { class: "main", id: "name-submit" }, "Name");
    const hint = h("p", { class: "lead", id: "name-hint", "aria-live": "polite" });
    const trouble = h("div", { class: "trouble", role: "alert", id: "name-trouble" });
    const form = h("form", { class: "naming", onsubmit: (event) => { event.preventDefault(); send(); } },
      h("div", { class: "strip" }, ids.slice(0, SHOWN).map((id) => picture(thumbnail(id))),
        ids.length > SHOWN && h("span", { class: "more" }, `+${number(ids.length - SHOWN)}`)),
      input, hint, trouble, h("p", { class: "buttons end" }, button("Cancel", leave), submit));

    function typed() {
      const known = classNamed(input.value);
      return { known, name: known?.name ?? input.value.trim() };
    }

    function told() {
      const { known, name } = typed();
      submit.textContent = !name ? "Name" : known ? `Add to ${quoted(name)}` : `New class ${quoted(name)}`;
      submit.disabled = !name || busy;
      if (known) hint.replaceChildren(`${quoted(name)} is known:`, ...examples(name, 4).map((src) => picture(src)));
      else hint.textContent = name ? "A class that is not there yet." : "Choose a known class or type a new name.";
      trouble.replaceChildren();
    }

    async function send(more = typed().known !== null, name = typed().name) {
      if (!name || busy) return;
      busy = true;
      submit.disabled = true;
      form.setAttribute("aria-busy", "true");
      try {
        await giveName(name, left, more);
        done = true;
        dialog.close();
      } catch (error) {
        const pictured = error.conflicts?.filter(({ id }) => id) ?? [];
        if (error.status === 409 && pictured.length) taken(pictured, name, more);
        else if (error.status === 409 && !more) exists(error, name);
        else trouble.replaceChildren(h("p", {}, error.message), h("p", { class: "lead" }, error.why, " ", error.hint));
        refresh();
      } finally {
        busy = false;
        submit.disabled = !typed().name;
        form.removeAttribute("aria-busy");
      }
    }

    /** Some of the images have been labelled by somebody else meanwhile. */
    function taken(conflicts, name, more) {
      const gone = new Set(conflicts.map(({ id }) => id));
      const others = left.filter((id) => !gone.has(id));
      const deed = ({ by, status, named }) => `${by || "Somebody"} ${status === "rejected" ? "rejected" : `named ${quoted(named)}`}`;
      const deeds = new Map();
      for (const each of conflicts) deeds.set(deed(each), [...deeds.get(deed(each)) ?? [], each.id]);
      const lines = [...deeds].map(([what, those]) => h("li", {},
        h("p", {}, what, h("span", { class: "tag" }, images(those.length))), strip(those, 6)));
      const some = others.length ? `${number(gone.size)} of ${images(left.length)}` : "All of them";
      const rest = () => { left = others; send(more, name); };
      trouble.replaceChildren(
        h("p", {}, `${some} ${gone.size === 1 ? "was" : "were"} labelled by somebody else meanwhile. Nothing was changed.`),
        h("ul", { class: "conflicts" }, lines),
        h("p", { class: "buttons" },
          others.length > 0 && button(`Name the other ${images(others.length)}`, rest, { class: "main" }),
          button("Leave it", leave)));
    }

    /** Somebody added the class meanwhile. */
    function exists(error, name) {
      const [{ by: who, name: there } = {}] = error.conflicts;
      trouble.replaceChildren(
        h("p", {}, who ? `${who} added the class ${quoted(name)} meanwhile.` : error.message),
        h("p", { class: "buttons" },
          button(`Add to ${quoted(there ?? name)}`, () => send(true, there ?? name), { class: "main" }),
          button("Leave it", leave)));
    }

    const dialog = openDialog(`Name ${images(ids.length)}`, form, {
      id: "name-dialog", busy: () => busy,
      closed: () => { document.removeEventListener("classes", again); resolve(done); },
    });
    input.value = guess;
    input.addEventListener("input", told);
    // Somebody may add the class just being typed: then the button says so.
    function again() { if (!trouble.childElementCount) told(); }
    document.addEventListener("classes", again);
    told();
    input.focus();
    input.select();
  });
}
