// Dropped or chosen files: sent some at a time, with progress, a way to stop, and the reasons of those that failed.
import { Offline, upload } from "./api.js";
import { $, h, images, number, size } from "./dom.js";
import { refresh, state } from "./state.js";

const FILES = 16;
const AT_ONCE = 2;
const TRIES = 20;
const LISTED = 200;
const AT_A_TIME = 200;
const PICTURE = /\.(jpe?g|jpe|jfif|png|webp|gif|bmp|tiff?|ppm|pgm|avif|heic|heif)$/i;
const isPicture = (file) => file.type.startsWith("image/") || PICTURE.test(file.name);
const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** All files below dropped entries, with their paths. */
async function* below(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve) => { entry.file(resolve, () => resolve(null)); });
    if (file) yield { file, name: entry.fullPath.replace(/^\//, "") || file.name };
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((resolve) => { reader.readEntries(resolve, () => resolve([])); });
    if (!some.length) return;
    for (const each of some) yield* below(each);
  }
}

let job = null;

class Job {
  queue = [];
  tally = { sent: 0, total: 0, known: 0, unknown: 0, named: 0, rejected: 0, again: 0, other: 0 };
  failed = [];
  stop = new AbortController();
  workers = 0;
  reading = 0; // folders, whose files are still being found

  add(files) {
    const { image_bytes: largest = Infinity } = state?.limits ?? {};
    for (const each of files) {
      if (!isPicture(each.file)) { this.tally.other += 1; continue; }
      this.tally.total += 1;
      if (each.file.size > largest) this.#fail(each.name, `larger than ${size(largest)}`);
      else this.queue.push(each);
    }
    while (this.workers < AT_ONCE && this.queue.length) this.#work();
    this.draw();
  }

  /** Adds what is found below dropped entries, some at a time. */
  async read(entries) {
    this.reading += 1;
    let some = [];
    for (const entry of entries) {
      for await (const each of below(entry)) {
        if (this.stop.signal.aborted) break;
        if (some.push(each) >= AT_A_TIME) { this.add(some); some = []; }
      }
    }
    this.reading -= 1;
    this.add(some);
  }

  get running() { return this.workers + this.reading > 0; }

  #fail(name, why) {
    this.failed.push({ name, why });
    this.tally.sent += 1;
  }

  #next() {
    const { images: most = FILES, request_bytes: room = Infinity } = state?.limits ?? {};
    const batch = [];
    let bytes = 4096;
    while (this.queue.length && batch.length < Math.min(FILES, most)) {
      bytes += this.queue[0].file.size + 1024;
      if (batch.length && bytes > room) break;
      batch.push(this.queue.shift());
    }
    return batch;
  }

  async #work() {
    this.workers += 1;
    for (let batch = this.#next(); batch.length && !this.stop.signal.aborted; batch = this.#next()) {
      await this.#send(batch);
      this.draw();
      refresh();
    }
    this.workers -= 1;
    this.draw();
  }

  async #send(batch) {
    for (let go = 1; ; go += 1) {
      try {
        const answer = await upload(batch, this.stop.signal);
        for (const each of answer.images) this.#count(each);
        this.tally.again += answer.again ?? 0;
        return;
      } catch (error) {
        if (error.name === "AbortError") return;
        // Busy or away for a moment: the same images again, which the service knows by their content.
        const later = error instanceof Offline || error.status === 503;
        if (later && go < TRIES && !this.stop.signal.aborted) { await pause(Math.min(5000, 500 * go)); continue; }
        for (const { name } of batch) this.#fail(name, [error.message, error.why].filter(Boolean).join(" "));
        return;
      }
    }
  }

  #count(image) {
    if (image.error && !image.id) { this.#fail(image.name, image.error); return; }
    this.tally.sent += 1;
    this.tally[image.status] += 1;
  }

  draw() {
    if (this !== job) return; // a stopped one that ends late
    const { sent, total, known, unknown, named, rejected, again, other } = this.tally;
    const stopped = this.stop.signal.aborted;
    let begin = images(total);
    if (stopped && sent < total) begin = `Stopped after ${number(sent)} of ${number(total)}`;
    else if (this.running) begin = `Looking at ${images(total)}: ${number(sent)} done`;
    const parts = [begin, `${number(known)} recognised`, `${number(unknown)} unknown`];
    const were = (count) => `${number(count)} ${count === 1 ? "was" : "were"}`;
    if (named) parts.push(`${were(named)} named before`);
    if (rejected) parts.push(`${were(rejected)} rejected before`);
    if (again) parts.push(`${were(again)} there already`);
    if (other) parts.push(`${number(other)} other ${other === 1 ? "file" : "files"} left out`);
    $("upload").hidden = false;
    $("upload-text").textContent = `${parts.join(" · ")}`;
    $("upload-stop").textContent = this.running ? "Stop" : "Close";
    $("upload-progress").hidden = !this.running;
    $("upload-progress").max = Math.max(1, total);
    $("upload-progress").value = sent;
    $("upload-failed").hidden = !this.failed.length;
    $("upload-failed").querySelector("summary").textContent = `${images(this.failed.length)} failed`;
    const lines = this.failed.slice(0, LISTED).map(({ name, why }) => h("li", {}, h("b", {}, name), ` ${why}`));
    $("upload-failed").querySelector("ul").replaceChildren(...lines);
  }
}

/** The job that runs, or a new one. */
function present() {
  if (!job?.running || job.stop.signal.aborted) job = new Job();
  return job;
}

export function startUpload() {
  if (matchMedia("(pointer: coarse)").matches) document.querySelector(".drop-title").textContent = "Add images";
  const chosen = (input) => {
    present().add([...input.files].map((file) => ({ file, name: file.webkitRelativePath || file.name })));
    input.value = "";
  };
  $("choose-images").addEventListener("click", () => $("files").click());
  $("choose-folder").addEventListener("click", () => $("folder").click());
  for (const id of ["files", "folder"]) $(id).addEventListener("change", () => chosen($(id)));
  $("upload-stop").addEventListener("click", () => {
    if (job.running) { job.stop.abort(); job.draw(); } else $("upload").hidden = true;
  });

  // A drop anywhere on the page counts, and none makes the browser leave it.
  addEventListener("dragover", (event) => { event.preventDefault(); $("drop").classList.add("over"); });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) $("drop").classList.remove("over"); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    $("drop").classList.remove("over");
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    const loose = entries.length ? [] : [...event.dataTransfer.files].map((file) => ({ file, name: file.name }));
    if (!entries.length && !loose.length) return;
    location.hash = "#images";
    if (entries.length) present().read(entries);
    else present().add(loose);
  });
}
