// The page that asks for the token; the service then gives a cookie and the same address shows the images.
const form = document.getElementById("login");
const token = document.getElementById("token");
const problem = document.getElementById("problem");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  problem.hidden = true;
  try {
    const answer = await fetch("login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token: token.value.trim() }),
    });
    if (answer.ok) { location.reload(); return; }
    const { error } = await answer.json().catch(() => ({}));
    problem.textContent = answer.status === 401 ? "This is not the token." : error || "The service could not answer.";
  } catch {
    problem.textContent = "No connection.";
  }
  problem.hidden = false;
  token.select();
});
