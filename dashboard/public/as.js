// The app as a user sees it, in a frame below a line that says whose session it is and ends it.

import { beginFlow, takeFlow } from "./flow.js";

const element = (id) => document.getElementById(id);

// The tokens leave the address at once: they must not be copied with it.
const given = new URLSearchParams(location.hash.slice(1));
history.replaceState(null, "", location.pathname);

const name = given.get("as") ?? "";
given.delete("as");
// Anyone can make a link to this page with tokens of their own: only the dashboard of this browser is believed.
const accessToken = takeFlow(given.get("svc_state")) ? given.get("svc_access_token") : null;

if (accessToken === null) {
  element("who").textContent = "This page is opened from the dashboard, at a user.";
} else {
  const until = new Date(Date.now() + Number(given.get("svc_expires_in")) * 1_000);
  document.title = `As ${name}`;
  element("who").textContent =
    `You are ${name}, in the name of an administrator, until ${until.toLocaleTimeString()}.`;
  element("end").hidden = false;
  element("end").addEventListener("click", end);
  await show();
}

async function show() {
  // A server without an app of its own leads to the dashboard, which stands in no frame.
  const { url } = await fetch("/", { method: "HEAD" });
  if (new URL(url).pathname.startsWith("/_/")) {
    return say("This server has no page of an app at its root. The session lives until it is ended here.");
  }
  const frame = document.createElement("iframe");
  frame.title = `The app as ${name}`;
  // The app takes the tokens as after any other sign-in that left the page.
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
  say(ended ? "The session has ended." : "The session could not be ended: try again.");
}

function say(text) {
  const message = document.createElement("p");
  message.textContent = text;
  message.setAttribute("role", "status");
  element("app").replaceChildren(message);
}
