// Which images are selected, also over several groups.

export class Selection extends EventTarget {
  #ids = new Set();

  get size() { return this.#ids.size; }
  get ids() { return [...this.#ids]; }
  has(id) { return this.#ids.has(id); }
  count(ids) { return ids.reduce((sum, id) => sum + this.#ids.has(id), 0); }

  set(ids, on) {
    for (const id of ids) if (on) this.#ids.add(id); else this.#ids.delete(id);
    this.dispatchEvent(new Event("change"));
  }

  clear() { this.set(this.ids, false); }

  /** Leaves out what is no longer unknown; gives these. */
  keepOnly(there) {
    const gone = this.ids.filter((id) => !there.has(id));
    if (gone.length) this.set(gone, false);
    return gone;
  }
}
