// Small pictures of fixed size. While the page flies by, those that come into view wait until it slows down.
import { h } from "./dom.js";

const FAST = 5; // pixels a millisecond
const SLOWS = 90; // milliseconds without a fast step
const LATER = { loading: "lazy", decoding: "async" };
const waiting = new Map();
let place = 0;
let time = 0;
let timer = 0;

export const thumbnail = (id) => `images/${id}/thumbnail`;

/** A picture; where its file is gone it says so calmly. */
export function picture(src, alt = "", props = {}) {
  const image = h("img", { alt, width: 96, height: 96, ...LATER, draggable: "false", ...props });
  image.addEventListener("error", () => image.classList.add("gone"));
  if (timer) waiting.set(image, src);
  else image.src = src;
  return image;
}

function slowed() {
  timer = 0;
  for (const [image, src] of waiting) if (image.isConnected) image.src = src;
  waiting.clear();
}

document.addEventListener("scroll", ({ timeStamp }) => {
  const speed = Math.abs(scrollY - place) / Math.max(1, timeStamp - time);
  [place, time] = [scrollY, timeStamp];
  if (speed < FAST) return;
  clearTimeout(timer);
  timer = setTimeout(slowed, SLOWS);
}, { passive: true });
