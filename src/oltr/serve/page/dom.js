// Making elements. Text from the service only ever becomes text nodes.

export const $ = (id) => document.getElementById(id);

/** An element: `class`, `on…` handlers, `dataset`, other properties as attributes; false and null leave one out. */
export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(node.dataset, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const button = (label, onclick, props = {}) => h("button", { type: "button", onclick, ...props }, label);

/** A level between 0 and 1 as a bar; the number itself stands beside it or in its title. */
export function bar(share, props = {}) {
  const level = h("span", { class: "level-fill" });
  level.style.width = `${100 * Math.min(1, Math.max(0, share || 0))}%`;
  return h("span", { class: "level", "aria-hidden": "true", ...props }, level);
}

const numbers = new Intl.NumberFormat("en");
export const number = (n) => numbers.format(n ?? 0);
export const images = (n) => (n === 1 ? "1 image" : `${number(n)} images`);
export const decimals = (x) => x?.toFixed(3) ?? "–";
export function percent(share) {
  if (share === null || share === undefined) return "–";
  return `${share > 0.995 && share < 1 ? "> 99" : Math.round(100 * share)} %`;
}
export const quoted = (name) => `“${name}”`;

export function size(bytes) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let power = 0;
  for (; bytes >= 1000 && power < units.length - 1; power += 1) bytes /= 1000;
  return `${power > 1 && bytes < 10 ? bytes.toFixed(1) : Math.round(bytes)} ${units[power]}`;
}

/** As the style sheets have it: one column, tabs at the bottom. */
const phone = matchMedia("(max-width: 720px)");
export const isPhone = () => phone.matches;

/** A field wants its keys itself. */
const FIELDS = "input, select, textarea, [contenteditable]";
export const typing = (target) => target instanceof Element && target.closest(FIELDS) !== null;
