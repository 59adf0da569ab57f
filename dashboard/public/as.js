// Shows the app as an impersonated user, in a frame below a banner that names the session and ends it.

import { beginFlow, takeFlow } from "./flow.js";

const element = (id) => document.getElementById(id);

// Remove the tokens from the address bar, so that they are not copied.
const given = new URLSearchParams(location.hash.slice(1));
history.replaceState(null, "", location.pathname);

const name = given.get("as") ?? "";
given.delete("as");
// Accept tokens only from this browser's dashboard: anyone could craft a link with their own.
const accessToken = takeFlow(given.get("svc_state")) ? given.get("svc_access_token") : null;

if (accessToken === null) {
  element("who").textContent = "Open this page from a user in the dashboard.";
} else {
  const until = new Date(Date.now() + Number(given.get("svc_expires_in")) * 1_000);
  document.title = `As ${name}`;
  element("who").textContent =
    `Signed in as ${name} by an administrator until ${until.toLocaleTimeString()}.`;
  element("end").hidden = false;
  element("end").addEventListener("click", end);
  await show();
}

async function show() {
  // Without a frontend, / redirects to the dashboard, which cannot be framed.
  const { url } = await fetch("/", { method: "HEAD" });
  // The session may have ended in the meantime, or be about to.
  if (element("end").disabled || element("end").hidden) return;
  if (new URL(url).pathname.startsWith("/_/")) {
    return say("This server has no frontend. The session stays active until you end it here.");
  }
  const frame = document.createElement("iframe");
  frame.title = `The app as ${name}`;
  // Pass the tokens to the app in the fragment, as redirect sign-ins do.
  given.set("svc_state", beginFlow());
  frame.src = `/#${given}`;
  element("app").replaceChildren(frame);
}

async function end() {
  element("end").disabled = true;
  const response = await fetch("/api/auth/signout", {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${accessToken}` },
    body: "{}",
  });
  const ended = response.ok || response.status === 401;
  element("end").disabled = !ended;
  element("end").hidden = ended;
  if (ended) element("who").textContent = `No longer signed in as ${name}.`;
  say(ended ? "Session ended." : "Could not end the session. Try again.");
}

function say(text) {
  const message = document.createElement("p");
  message.textContent = text;
  message.setAttribute("role", "status");
  element("app").replaceChildren(message);
}
