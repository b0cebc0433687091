// Calls of the service.

export class ApiError extends Error {
  constructor(status, body) {
    super(body.error || `The service answered ${status}.`);
    this.status = status;
    this.why = body.why || "";
    this.hint = body.try || "";
    this.conflicts = body.conflicts || [];
  }
}

/** The service cannot be reached; whatever was asked may be asked again. */
export class Offline extends Error {
  constructor() { super("No connection. Nothing was lost: try again in a moment."); }
}

const connection = new EventTarget();
let online = true;
export const onConnection = (listen) => connection.addEventListener("change", () => listen(online));
function connected(now) {
  if (now === online) return;
  online = now;
  connection.dispatchEvent(new Event("change"));
}

async function request(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    connected(false);
    throw new Offline();
  }
  // A proxy in front answers for a service that is being restarted.
  if (answer.status === 502 || answer.status === 504) { connected(false); throw new Offline(); }
  connected(true);
  // The same address then shows the page that asks for the token.
  if (answer.status === 401 && path === "state") { location.reload(); return new Promise(() => {}); }
  if (!answer.ok) throw new ApiError(answer.status, await answer.json().catch(() => ({})));
  return answer;
}

const address = (path, query = {}) => {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
};

export const get = async (path, query) => (await request(address(path, query))).json();
export const blob = async (path) => (await request(path)).blob();
export const post = async (path, body) => (await request(path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
})).json();

export async function remove(path, query) {
  const answer = await request(address(path, query), { method: "DELETE" });
  return answer.status === 204 ? {} : answer.json();
}

/** Sends files (`{file, name}`), which the service keeps and answers. */
export async function upload(files, signal) {
  const form = new FormData();
  for (const { file, name } of files) form.append("files", file, name);
  return (await request("images", { method: "POST", body: form, signal })).json();
}

/** The service gives addresses from its root; here they are relative. */
export const relative = (path) => path.replace(/^\//, "");
