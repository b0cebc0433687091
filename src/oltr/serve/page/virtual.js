// A grid of which only the rows in view are in the document, so that ten thousand images cost what fifty do.
import { typing } from "./dom.js";

const SPARE_ROWS = 2;

export class Grid {
  #drawn = new Map();
  #frame = 0;
  #shape = null;
  #width = 0;
  #height = -1;

  /**
   * `layout(width)` gives {columns, height, gap}; `build(item)` makes an element for a key, `fill(node, item, index)`
   * says what is in it now; `key(item)` names an item. `roving` lets arrow keys go from item to item, with
   * `moved(from, to, event)` told. Items come from anything with `length`, `at(index)` and `findIndex(test)`; one
   * that is not there yet is undefined.
   */
  constructor(box, { layout, build, fill, key, roving = false, moved = () => {} }) {
    Object.assign(this, { box, layout, build, fill, key, roving, moved, items: [], current: 0 });
    box.classList.add("virtual");
    this.scroller = box.closest(".scroller");
    document.addEventListener("scroll", () => this.draw(), { passive: true, capture: true });
    const resized = new ResizeObserver(() => this.draw());
    resized.observe(box);
    resized.observe(box.parentElement);
    addEventListener("resize", () => this.draw());
    box.addEventListener("keydown", (event) => this.#keys(event));
    box.addEventListener("focusin", (event) => this.#focused(event));
  }

  /** Shows other items; what is on the screen, and what has the focus, stays when items before it come or go. */
  show(items, { keepPlace = true } = {}) {
    const held = keepPlace ? this.#held() : null;
    const focus = [...this.#drawn].find(([, { node }]) => node.contains(document.activeElement))?.[0];
    this.items = items;
    const still = focus === undefined ? -1 : this.#indexOf(focus);
    this.current = Math.max(0, Math.min(still < 0 ? this.current : still, items.length - 1));
    this.#drawNow(true);
    if (held) this.#hold(held);
    if (focus !== undefined && !this.box.contains(document.activeElement)) this.focus(this.current, { scroll: false });
  }

  draw() {
    this.#frame ||= requestAnimationFrame(() => { this.#frame = 0; this.#drawNow(false); });
  }

  node(key) { return this.#drawn.get(key)?.node; }

  /** Brings an item into view and gives it the focus. */
  focus(index, { scroll = true } = {}) {
    if (!this.items.length) return;
    this.current = Math.max(0, Math.min(index, this.items.length - 1));
    if (scroll) this.#reveal(this.current);
    this.#drawNow(false);
    for (const { node, index: at } of this.#drawn.values()) {
      if (at === this.current) node.focus({ preventScroll: true });
    }
  }

  #view() {
    const { top, bottom } = this.scroller ? this.scroller.getBoundingClientRect() : { top: 0, bottom: innerHeight };
    return { top, bottom };
  }

  #by(distance) { (this.scroller || window).scrollBy({ top: distance, behavior: "instant" }); }

  #reveal(index) {
    if (!this.#shape) return;
    const { columns, height, gap } = this.#shape;
    const { top, bottom } = this.#view();
    const at = this.box.getBoundingClientRect().top + Math.floor(index / columns) * (height + gap);
    const head = this.scroller ? 8 : 76;
    const foot = this.scroller ? 8 : 96;
    if (at < top + head) this.#by(at - top - head);
    else if (at + height > bottom - foot) this.#by(Math.min(at - top - head, at + height - bottom + foot));
  }

  /** The first item in view and where it is, unless the list is at its beginning. */
  #held() {
    if (!this.#width || this.#view().top <= this.box.getBoundingClientRect().top) return null;
    const { top } = this.#view();
    const drawn = [...this.#drawn].map(([key, { node }]) => ({ key, at: node.getBoundingClientRect() }));
    return drawn.filter(({ at }) => at.bottom > top + 60).map(({ key, at }) => ({ key, at: at.top }));
  }

  #hold(held) {
    for (const { key, at } of held) {
      const index = this.#indexOf(key);
      if (index < 0) continue;
      const { columns, height, gap } = this.#shape;
      const now = this.box.getBoundingClientRect().top + Math.floor(index / columns) * (height + gap);
      if (Math.abs(now - at) >= 1) { this.#by(now - at); this.#drawNow(false); }
      return;
    }
  }

  #indexOf(key) { return this.items.findIndex((item) => this.key(item) === key); }

  #drawNow(changed) {
    const width = this.box.clientWidth;
    if (!width) return;
    if (width !== this.#width) {
      this.#width = width;
      this.#shape = this.layout(width);
      const { columns, height, gap } = this.#shape;
      this.box.style.setProperty("--item-width", `${(width - gap * (columns - 1)) / columns}px`);
      this.box.style.setProperty("--item-height", `${height}px`);
      changed = true;
    }
    const { columns, height, gap } = this.#shape;
    const rows = Math.ceil(this.items.length / columns);
    const total = Math.max(0, rows * (height + gap) - gap);
    if (total !== this.#height) { this.#height = total; this.box.style.height = `${total}px`; }

    const { top, bottom } = this.#view();
    const start = this.box.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor((top - start) / (height + gap)) - SPARE_ROWS);
    const last = Math.min(rows - 1, Math.floor((bottom - start) / (height + gap)) + SPARE_ROWS);
    const wanted = [];
    for (let i = first * columns; i < Math.min((last + 1) * columns, this.items.length); i += 1) wanted.push(i);
    // The one with the focus stays, or the keyboard would lose its place.
    const focused = this.box.contains(document.activeElement) && this.current < this.items.length;
    if (focused && !wanted.includes(this.current)) {
      wanted.push(this.current);
      wanted.sort((a, b) => a - b);
    }
    this.#place(wanted, changed);
  }

  #place(wanted, changed) {
    const { columns, height, gap } = this.#shape;
    const across = (this.#width - gap * (columns - 1)) / columns + gap;
    const kept = new Map();
    for (const index of wanted) {
      const item = this.items.at(index);
      kept.set(item === undefined ? `…${index}` : this.key(item), { item, index });
    }
    for (const [key, { node }] of this.#drawn) if (!kept.has(key)) { node.remove(); this.#drawn.delete(key); }
    const focused = document.activeElement;
    let next = this.box.firstElementChild;
    for (const [key, { item, index }] of kept) {
      let drawn = this.#drawn.get(key);
      const fresh = !drawn;
      if (fresh) this.#drawn.set(key, drawn = { node: item === undefined ? this.#blank() : this.build(item) });
      const { node } = drawn;
      if (node === next) next = next.nextElementSibling;
      else this.box.insertBefore(node, next);
      if (fresh || drawn.index !== index || changed) {
        const down = Math.floor(index / columns) * (height + gap);
        node.style.transform = `translate(${(index % columns) * across}px, ${down}px)`;
      }
      if ((fresh || changed || drawn.index !== index) && node.matches("article, [role=option]")) {
        node.setAttribute("aria-posinset", index + 1);
        node.setAttribute("aria-setsize", this.items.length);
      }
      const same = !fresh && !changed && drawn.item === item && drawn.index === index;
      if (item !== undefined && !same) this.fill(node, item, index);
      Object.assign(drawn, { item, index });
      if (this.roving) node.tabIndex = index === this.current ? 0 : -1;
    }
    if (this.roving && kept.size && ![...kept.values()].some(({ index }) => index === this.current)) {
      this.box.firstElementChild.tabIndex = 0;
    }
    if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true });
  }

  #blank() {
    const node = document.createElement("div");
    node.className = "blank";
    return node;
  }

  #focused(event) {
    for (const { node, index } of this.#drawn.values()) if (node.contains(event.target)) this.current = index;
  }

  #keys(event) {
    if (!this.roving || event.ctrlKey || event.altKey || event.metaKey || typing(event.target)) return;
    const { columns, height, gap } = this.#shape;
    const page = columns * Math.max(1, Math.floor((innerHeight - 200) / (height + gap)));
    const step = {
      ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, PageUp: -page, PageDown: page,
      Home: -this.items.length, End: this.items.length,
    }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const from = this.current;
    if (Math.abs(step) === columns && (from + step < 0 || from + step >= this.items.length)) return;
    this.focus(from + step);
    this.moved(from, this.current, event);
  }
}
