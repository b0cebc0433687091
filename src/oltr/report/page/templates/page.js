(() => {
  "use strict";
  const root = document.documentElement;

  // The theme: the system's until the button is used; kept where the browser allows it.
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const name = () => { button.textContent = isDark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Use ${isDark() ? "light" : "dark"} colours`); };
  const kept = (value) => {
    try {
      if (value) localStorage.setItem("oltr-theme", value);
      return localStorage.getItem("oltr-theme");
    } catch { return null; }
  };
  if (kept()) root.dataset.theme = kept();
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; kept(root.dataset.theme); name(); });
  dark.addEventListener("change", name);
  name();

  // Sorting: a button in each heading; what has no value stays last, either way.
  const table = document.getElementById("class-table");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  let rows = [...body.rows];
  const value = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.value === undefined) return cell.textContent;
    return cell.dataset.value === "" ? null : Number(cell.dataset.value);
  };
  const letters = new Intl.Collator(undefined, { numeric: true });
  const order = (direction) => ([x], [y]) => {
    if (x === null || y === null) return (x === null) - (y === null);
    return direction * (typeof x === "string" ? letters.compare(x, y) : x - y);
  };
  heads.forEach((head, column) => {
    const press = document.createElement("button");
    press.type = "button";
    press.append(...head.childNodes);
    head.append(press);
    press.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      // Each value is read once. An emptied body takes rows fast; taken out one by one, each looks back at
      // the white space that the others left.
      const keyed = rows.map((row) => [value(row, column), row]).sort(order(up ? 1 : -1));
      rows = keyed.map(([, row]) => row);
      body.replaceChildren();
      body.append(...rows);
    });
  });

  // Filtering, by a part of the name and by shot group.
  const form = document.getElementById("filter");
  const part = document.getElementById("filter-name");
  const group = document.getElementById("filter-group");
  const shown = document.getElementById("filter-count");
  const filter = () => {
    const text = part.value.trim().toLocaleLowerCase();
    let left = 0;
    for (const row of rows) {
      const fits = (!group.value || row.dataset.group === group.value) && row.cells[0].textContent.toLocaleLowerCase().includes(text);
      row.hidden = !fits;
      left += fits;
    }
    shown.textContent = `${left.toLocaleString("en")} of ${rows.length.toLocaleString("en")} classes`;
  };
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();

  // Figures are folded, and on a phone as wide as the screen: a button shows them as large as they are.
  const figures = [...document.querySelectorAll("details.figure")];
  const unfold = document.getElementById("unfold");
  unfold.hidden = false;
  unfold.addEventListener("click", () => {
    const open = unfold.textContent === "Unfold all";
    figures.forEach((part) => { part.open = open; });
    unfold.textContent = open ? "Fold all" : "Unfold all";
  });
  document.querySelectorAll(".enlarge").forEach((press) => {
    press.hidden = false;
    press.addEventListener("click", () => {
      press.textContent = press.closest("figure").classList.toggle("large") ? "Fit" : "Enlarge";
    });
  });

  // What is folded would not be printed.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")].filter((part) => !part.parentElement.closest("details"));
    closed.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((part) => { part.open = false; }));
})();
