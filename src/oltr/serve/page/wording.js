// Actions of the history as sentences.
import { images, quoted } from "./dom.js";

const to = (action) => action.details?.to ?? action.details?.new ?? action.details?.name_after ?? "";

/** What was done, without who. */
export function deed(action) {
  const name = quoted(action.name);
  switch (action.kind) {
    case "add": return action.details?.more ? `added ${images(action.images)} to ${name}` : `named ${images(action.images)} ${name}`;
    case "reject": return `rejected ${images(action.images)}`;
    case "rename": return to(action) ? `renamed ${name} to ${quoted(to(action))}` : `renamed ${name}`;
    case "remove": return `removed the class ${name}`;
    case "undo": return `undid action ${action.details?.undone ?? action.details?.action ?? ""}${action.name ? `, ${name}` : ""}`;
    default: return `${action.kind} ${action.name || ""}`;
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
