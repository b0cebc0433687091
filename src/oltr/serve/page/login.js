// The page that asks for the token; the service then gives a cookie and the same address shows the images.
const form = document.getElementById("login");
const token = document.getElementById("token");
const problem = document.getElementById("problem");
const NOT_KEPT = "The token is right, but the browser did not keep the cookie. Allow cookies for this address.";

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  problem.hidden = true;
  try {
    const answer = await fetch("login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token: token.value.trim() }),
    });
    // Asked at once, or a browser that keeps no cookie would show this page again without a word.
    const kept = answer.ok && (await fetch("state")).status !== 401;
    if (kept) { location.reload(); return; }
    const { error } = answer.ok ? {} : await answer.json().catch(() => ({}));
    if (answer.ok) problem.textContent = NOT_KEPT;
    else problem.textContent = answer.status === 401 ? "This is not the token." : error || "The service could not answer.";
  } catch {
    problem.textContent = "No connection.";
  }
  problem.hidden = false;
  token.select();
});
