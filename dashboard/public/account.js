// Handles links from mails if the app has no page for them. Nothing is sent before the user clicks, so that link scanners
// of mail programs do not use up the token.

import { beginFlow } from "./flow.js";

const element = (id) => document.getElementById(id);

// Remove the token from the address bar, so that it is neither kept in the history nor copied.
const [kind, token] = [...new URLSearchParams(location.hash.slice(1))][0] ?? [];
history.replaceState(null, "", location.pathname);

const pages = {
  svc_verify_token: {
    title: "Confirm your email address",
    text: "Click to confirm your email address.",
    button: "Confirm address",
    fields: [],
    path: "/api/auth/verify-email/confirm",
    done: () => show("Your address is confirmed. You can close this page.", "done"),
  },
  svc_reset_token: {
    title: "Set a new password",
    text: "This signs you out on all other devices.",
    button: "Set password",
    fields: ["password"],
    path: "/api/auth/reset/confirm",
    async done({ refreshToken }) {
      // End the session that the reset created, because this page is not the app.
      await post("/api/auth/signout", { refreshToken });
      show("Your password is set. Go back to the app and sign in.", "done");
    },
  },
  svc_magic_token: {
    title: "Sign in",
    text: "Continue only if you asked for this email: you will be signed in to the account it was sent for.",
    button: "Sign in",
    fields: [],
    path: "/api/auth/magic/verify",
    done({ accessToken, refreshToken, expiresIn, userId }) {
      // Pass the tokens to the app in the fragment, as redirect sign-ins do.
      const fragment = new URLSearchParams({
        svc_access_token: accessToken,
        svc_refresh_token: refreshToken,
        svc_expires_in: expiresIn,
        svc_user_id: userId,
        svc_state: beginFlow(),
      });
      location.replace(`/#${fragment}`);
    },
  },
};

const page = Object.hasOwn(pages, kind ?? "") ? pages[kind] : null;

if (page === null || !token) {
  show(
    "Open this page from a link in a mail. If you copied the link, make sure that it is complete.",
    "error",
  );
} else {
  document.title = page.title;
  element("title").textContent = page.title;
  element("text").textContent = page.text;
  element("button").textContent = page.button;
  const withPassword = page.fields.includes("password");
  element("password-field").hidden = !withPassword;
  element("password").disabled = !withPassword;
  element("form").hidden = false;
  element("form").addEventListener("submit", (event) => {
    event.preventDefault();
    submit(page);
  });
}

async function submit({ path, fields, done }) {
  const values = Object.fromEntries(fields.map((field) => [field, element(field).value]));
  element("button").disabled = true;
  show("", "");
  try {
    const answer = await post(path, { token, ...values });
    element("form").hidden = true;
    await done(answer);
  } catch (error) {
    element("button").disabled = false;
    show(error.message, "error");
  }
}

async function post(path, body) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.errorMessage);
  return answer;
}

function show(text, messageKind) {
  element("message").textContent = text;
  element("message").dataset.kind = messageKind;
}
