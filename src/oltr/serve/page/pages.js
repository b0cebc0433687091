// A long list on the service, of which the pages that are looked at are fetched.

const SIZE = 100;
const PATIENCE = 40;
const AT_ONCE = 3;

export class Pages {
  length = 0;
  #pages = new Map();
  #wanted = new Set();
  #round = 0;
  #timer = 0;

  /** `load(offset, limit)` gives {total, images}; `arrived()` is called when more is there. */
  constructor(load, arrived) { Object.assign(this, { load, arrived }); }

  at(index) {
    const number = Math.floor(index / SIZE);
    const page = this.#pages.get(number);
    if (page?.round !== this.#round) this.#want(number);
    return page?.images[index % SIZE];
  }

  /** Among what is there; pages of this round first. */
  findIndex(test) {
    const pages = [...this.#pages].sort(([, one], [, other]) => other.round - one.round);
    for (const [number, { images }] of pages) {
      const place = images.findIndex(test);
      if (place >= 0) return number * SIZE + place;
    }
    return -1;
  }

  /** Asks again for what is looked at; what was there is shown until then. */
  async refresh() {
    this.#round += 1;
    if (!this.length) await this.#fetch(0);
    else this.arrived();
  }

  // Of the pages a quick scroll passes by only the last are fetched.
  #want(number) {
    this.#wanted.delete(number);
    this.#wanted.add(number);
    this.#timer ||= setTimeout(async () => {
      const last = [...this.#wanted].slice(-AT_ONCE);
      this.#wanted.clear();
      await Promise.all(last.map((each) => this.#fetch(each)));
      this.#timer = 0;
      this.arrived();
    }, PATIENCE);
  }

  async #fetch(number) {
    const round = this.#round;
    try {
      const { total, images } = await this.load(number * SIZE, SIZE);
      if (round !== this.#round && this.#pages.get(number)?.round === this.#round) return;
      this.length = total;
      this.#pages.set(number, { round, images });
    } catch (error) {
      // Shown as it was; the next round of questions asks again.
      this.#pages.set(number, { round, images: this.#pages.get(number)?.images || [] });
      console.warn(error.message);
    }
  }
}
