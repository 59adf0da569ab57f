/** The account forms without a browser: their texts, and their messages for errors. */
import assert from "node:assert/strict";
import { renderToString } from "react-dom/server";
import { AccountError, ConnectionLostError } from "syncline/client";
import { SynclineProvider } from "syncline/react";
import { AccountTexts, PasskeyList, RequireSignIn, SignIn, SignUp } from "syncline/react/account-forms";
import { problemOf, useTexts } from "../../../mod/client/react/account_forms/texts.ts";
import { serviceErrors } from "../../../mod/errors.ts";
import { projectDir } from "../../support/processes/child.ts";

/** Texts as a component receives them. */
function texts(): ReturnType<typeof useTexts> {
  let found: ReturnType<typeof useTexts> | null = null;
  function Reader() {
    found = useTexts();
    return null;
  }
  renderToString(<Reader />);
  assert.ok(found !== null);
  return found;
}

const accountError = (code: string | null, { status = 400, retryAfterMs = null as number | null } = {}) =>
  new AccountError("From the server", { code, status, retryAfterMs, data: null });

const ERRORS: readonly (readonly [name: string, error: unknown, message: string])[] = [
  ["a code with a text", accountError("invalid_credentials"), "The email address or the password is wrong."],
  ["a code of the app", accountError("not_invited"), "From the server"],
  [
    "a rate limit",
    accountError("rate_limited", { status: 429, retryAfterMs: 2_400 }),
    "Too many attempts. Try again in 3 seconds.",
  ],
  [
    "a rate limit of a second",
    accountError("rate_limited", { status: 429, retryAfterMs: 900 }),
    "Too many attempts. Try again in 1 second.",
  ],
  [
    "a response of a proxy",
    accountError(null, { status: 502 }),
    "The server cannot be reached. Check your connection and try again.",
  ],
  [
    "no response",
    new TypeError("Failed to fetch"),
    "The server cannot be reached. Check your connection and try again.",
  ],
  [
    "a lost connection",
    new ConnectionLostError("action"),
    "The server cannot be reached. Check your connection and try again.",
  ],
  ["a closed window", accountError("popup_closed"), ""],
  ["a canceled prompt", new DOMException("Canceled", "NotAllowedError"), ""],
  ["a device with a passkey", new DOMException("x", "InvalidStateError"), "This passkey is added already."],
];

for (const [name, error, message] of ERRORS) {
  Deno.test(`AF1 the message for ${name}`, () => assert.equal(problemOf(texts(), error), message));
}

Deno.test("AF1 every code that has a message is thrown by the server, the client or the browser", async () => {
  let source = "";
  for (const folder of ["mod/auth", "mod/client/accounts"]) {
    for await (const path of filesIn(`${projectDir}/${folder}`)) source += await Deno.readTextFile(path);
  }
  const unknown = Object.keys(texts().errors)
    .filter((code) => !(code in serviceErrors) && !source.includes(`"${code}"`));
  assert.deepEqual(unknown, []);
});

async function* filesIn(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) yield* filesIn(`${folder}/${name}`);
    else yield `${folder}/${name}`;
  }
}

Deno.test("AF4 a server renders a placeholder instead of forms, settings and the app", () => {
  const page = renderToString(
    <SynclineProvider client={null}>
      <RequireSignIn>
        <p>Secret</p>
      </RequireSignIn>
      <PasskeyList />
    </SynclineProvider>,
  );
  assert.equal(page.match(/Loading…/g)?.length, 2);
  assert.doesNotMatch(page, /Secret/);
});

Deno.test("AF4 texts are replaced for the forms below, also in steps", () => {
  const page = renderToString(
    <SynclineProvider client={null}>
      <AccountTexts texts={{ email: "E-Mail-Adresse", signIn: "Anmelden" }}>
        <AccountTexts texts={{ signIn: "Einloggen", errors: { invalid_code: "Falsch." } }}>
          <SignIn />
        </AccountTexts>
        <SignUp />
      </AccountTexts>
    </SynclineProvider>,
  );
  assert.equal(page.match(/E-Mail-Adresse/g)?.length, 2);
  assert.match(page, /Einloggen/);
  assert.doesNotMatch(page, /Anmelden|Sign in/);
  assert.match(page, /Password/, "other texts stay");
});
