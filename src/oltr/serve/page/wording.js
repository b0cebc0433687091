// Actions of the history as sentences.
import { images as counted, quoted } from "./dom.js";

const images = (count) => (count ? counted(count) : "images");

/** What was done, without who. */
export function deed(action) {
  const name = quoted(action.name);
  const some = images(action.images || action.details?.images);
  switch (action.kind) {
    case "add": return action.details?.more ? `added ${some} to ${name}` : `named ${some} ${name}`;
    case "reject": return `rejected ${some}`;
    case "rename": return action.details?.to ? `renamed ${name} to ${quoted(action.details.to)}` : `renamed ${name}`;
    case "remove": return `removed the class ${name}`;
    case "undo": return `undid action ${action.details?.undoes ?? ""}${action.name ? `, ${name}` : ""}`;
    default: return action.text || action.kind;
  }
}

export const sentence = (action) => `${action.by || "Somebody"} ${deed(action)}`;

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

export function when(time) {
  const date = new Date(time);
  if (Number.isNaN(date.valueOf())) return "";
  return (date.toDateString() === new Date().toDateString() ? clock : day).format(date);
}
