// The dialog that names images: a new class or more of one that is known; and what to do when others were quicker.
import { giveName } from "./act.js";
import { classNamed, examples } from "./class_list.js";
import { openDialog } from "./dialog.js";
import { button, h, images, quoted } from "./dom.js";
import { picture, thumbnail } from "./pictures.js";
import { refresh } from "./state.js";
import { strip } from "./strip.js";

const SHOWN = 10;

/** Names images; gives true when done. `guess` is a class they may be. */
export function nameImages(ids, { guess = "" } = {}) {
  return new Promise((resolve) => {
    let left = ids;
    let done = false;
    const input = h("input", { id: "name-input", list: "class-names", maxlength: 200, autocomplete: "off", required: true, "aria-label": "Name of the class", placeholder: "What is it?" });
    const submit = h("button", { class: "main", id: "name-submit" }, "Name");
    const hint = h("p", { class: "lead", id: "name-hint", "aria-live": "polite" });
    const trouble = h("div", { class: "trouble", role: "alert", id: "name-trouble" });
    const form = h("form", { class: "naming", onsubmit: (event) => { event.preventDefault(); send(); } },
      h("div", { class: "strip" }, ids.slice(0, SHOWN).map((id) => picture(thumbnail(id))), ids.length > SHOWN && h("span", { class: "more" }, `+${ids.length - SHOWN}`)),
      input, hint, trouble, h("p", { class: "buttons end" }, button("Cancel", () => dialog.close()), submit));

    function told() {
      const known = classNamed(input.value);
      const name = known?.name ?? input.value.trim();
      submit.textContent = !name ? "Name" : known ? `Add to ${quoted(name)}` : `New class ${quoted(name)}`;
      submit.disabled = !name;
      const pictures = known ? examples(known.name, 4).map((src) => picture(src)) : [];
      hint.replaceChildren(...(known ? [h("span", {}, `${quoted(known.name)} is known:`), ...pictures] : [name ? "A class that is not there yet." : "Choose a known class or type a new name."]));
      trouble.replaceChildren();
    }

    async function send(more = Boolean(classNamed(input.value)), name = classNamed(input.value)?.name ?? input.value.trim()) {
      if (!name || submit.disabled) return;
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
        else trouble.replaceChildren(h("p", {}, error.message), h("p", { class: "lead" }, [error.why, error.hint].filter(Boolean).join(" ")));
        refresh();
      } finally {
        submit.disabled = false;
        form.removeAttribute("aria-busy");
      }
    }

    /** Some of the images have been labelled by somebody else meanwhile. */
    function taken(conflicts, name, more) {
      const gone = new Set(conflicts.map(({ id }) => id));
      const others = left.filter((id) => !gone.has(id));
      const deeds = Map.groupBy(conflicts, (each) => `${each.by || "Somebody"} ${each.status === "rejected" ? "rejected" : `named ${quoted(each.named)}`}`);
      const lines = [...deeds].map(([deed, each]) => h("li", {}, h("p", {}, deed, h("span", { class: "tag" }, images(each.length))), strip(each.map(({ id }) => id), 6)));
      trouble.replaceChildren(
        h("p", {}, `${others.length ? `${images(gone.size)} of ${left.length} ${gone.size === 1 ? "was" : "were"}` : "All of them were"} labelled by somebody else meanwhile. Nothing was changed.`),
        h("ul", { class: "conflicts" }, lines),
        h("p", { class: "buttons" }, others.length ? button(`Name the other ${images(others.length)}`, () => { left = others; send(more, name); }, { class: "main" }) : "",
          button("Leave it", () => dialog.close())));
    }

    /** Somebody added the class meanwhile. */
    function exists(error, name) {
      const who = error.conflicts[0]?.by;
      trouble.replaceChildren(
        h("p", {}, who ? `${who} added the class ${quoted(name)} meanwhile.` : error.message),
        h("p", { class: "buttons" }, button(`Add to ${quoted(name)}`, () => send(true, error.conflicts[0]?.name ?? name), { class: "main" }), button("Leave it", () => dialog.close())));
    }

    const dialog = openDialog(`Name ${images(ids.length)}`, form, {
      id: "name-dialog",
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
