// Handles links from mails if the app has no page for them. Nothing is sent before the user clicks, so that link scanners
// of mail programs do not use up the token.

import { beginFlow } from "./flow.js";

const element = (id) => document.getElementById(id);

/** Sends the code of a second factor, once one is needed. */
let submitCode = null;

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
      passwordSet();
    },
    // The app asks for the second factor when the user signs in.
    factorRequired: passwordSet,
  },
  svc_magic_token: {
    title: "Sign in",
    text: "Continue only if you asked for this email: you will be signed in to the account it was sent for.",
    button: "Sign in",
    fields: [],
    path: "/api/auth/magic/verify",
    factorRequired: askForCode,
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
    if (submitCode === null) submit(page);
    else submitCode();
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
    if (error.code === "mfa_required") page.factorRequired(page, error.data.challenge);
    else show(error.message, "error");
  }
}

function passwordSet() {
  element("form").hidden = true;
  show("Your password is set. Go back to the app and sign in.", "done");
}

/** The second step of a sign-in. */
function askForCode(page, challenge) {
  element("text").textContent = "Your account has a second factor.";
  element("code-field").hidden = false;
  element("code").disabled = false;
  element("code").focus();
  submitCode = async () => {
    const typed = element("code").value.replaceAll(/\s/g, "");
    const proof = /^\d{6}$/.test(typed) ? { code: typed } : { recoveryCode: typed };
    element("button").disabled = true;
    show("", "");
    try {
      const answer = await post("/api/auth/mfa/verify", { challenge, ...proof });
      element("form").hidden = true;
      await page.done(answer);
    } catch (error) {
      element("button").disabled = false;
      show(error.message, "error");
    }
  };
}

async function post(path, body) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw Object.assign(new Error(answer.errorMessage), answer.errorData);
  return answer;
}

function show(text, messageKind) {
  element("message").textContent = text;
  element("message").dataset.kind = messageKind;
}
