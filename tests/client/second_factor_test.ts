/** `syncline/accounts`: the second step of a sign-in, from an error or from the page's address. */
import assert from "node:assert/strict";
import { challengeOf, finishSignIn, proofOf } from "../../mod/client/account_features/mod.ts";
import { AccountError, SynclineClient } from "../../mod/client/mod.ts";
import { AccountServer, failure } from "./support/account_server.ts";
import { FakeClock, settle } from "./support/fake_clock.ts";
import { FakeSockets } from "./support/fake_socket.ts";

const waiting = { challenge: "c".repeat(43), expiresIn: 300 };

function start() {
  const clock = new FakeClock();
  const server = new AccountServer(clock);
  const client = new SynclineClient("http://app.test", {
    webSocket: new FakeSockets().factory,
    clock,
    random: () => 0.5,
    polling: false,
    accounts: { fetch: server.fetch },
  });
  return { client, server, [Symbol.dispose]: () => client.close() };
}

function mfaRequired(): Response {
  const errorData = { code: "mfa_required", data: waiting };
  return Response.json({ status: "error", errorMessage: "A second factor is required", errorData }, {
    status: 403,
  });
}

Deno.test("MF1 a sign-in that needs a second factor is finished with the challenge of its error", async () => {
  using tab = start();
  const { client, server } = tab;
  server.answerNext = mfaRequired;
  const error = await client.auth.signIn({ email: "ada", password: "p" }).then(() => null, (error) => error);
  assert.ok(error instanceof AccountError);
  assert.deepEqual([error.code, error.message], ["mfa_required", "A second factor is required"]);
  const challenge = challengeOf(error);
  assert.deepEqual(challenge, waiting);
  assert.ok(challenge);
  server.answerNext = () => failure(400, "invalid_code");
  await assert.rejects(finishSignIn(client, challenge, { code: "000000" }), { code: "invalid_code" });
  server.answerNext = () =>
    Response.json({ accessToken: "e30.e30.s", refreshToken: "r", expiresIn: 900, userId: "ada" });
  server.requests.length = 0;
  await finishSignIn(client, challenge, { recoveryCode: "abcde-fghij" });
  assert.deepEqual(server.requests[0], [
    "mfa/verify",
    { challenge: waiting.challenge, recoveryCode: "abcde-fghij" },
  ]);
  for (let turn = 0; turn < 8; turn++) await settle();
  assert.equal((await client.auth.signInWays()).password, true);
});

Deno.test("other errors have no challenge", () => {
  const made = (code: string, data: unknown) =>
    new AccountError("no", { code, status: 403, retryAfterMs: null, data });
  for (
    const error of [
      null,
      "mfa_required",
      new Error("mfa_required"),
      made("email_not_verified", waiting),
      made("mfa_required", null),
      made("mfa_required", { challenge: 1, expiresIn: 300 }),
      made("mfa_required", { challenge: "c" }),
    ]
  ) {
    assert.equal(challengeOf(error), null);
  }
});

Deno.test("typed text of six digits is a code, all other text is a recovery code", () => {
  assert.deepEqual(proofOf(" 123 456 "), { code: "123456" });
  assert.deepEqual(proofOf("abcde-fghij"), { recoveryCode: "abcde-fghij" });
  assert.deepEqual(proofOf("1234567"), { recoveryCode: "1234567" });
});

Deno.test("MF1 a challenge in the page's address is valid only for a sign-in of this browser", async () => {
  const items = new Map<string, string>();
  const localStorage = {
    get length() {
      return items.size;
    },
    key: (index: number) => [...items.keys()][index] ?? null,
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => void items.set(key, value),
    removeItem: (key: string) => void items.delete(key),
  };
  const location = { hash: "", pathname: "/app", search: "", href: "http://app.test/app" };
  const page = { document: new EventTarget(), localStorage, location, history: { replaceState() {} } };
  const scope = globalThis as unknown as Record<string, unknown>;
  const before = Object.keys(page).map((key) => [key, Object.getOwnPropertyDescriptor(scope, key)] as const);
  for (const [key, value] of Object.entries(page)) {
    Object.defineProperty(scope, key, { value, configurable: true, writable: true });
  }
  try {
    using tab = start();
    const { client } = tab;
    const come = async (data: string, state: string) => {
      location.hash = `#${new URLSearchParams({
        svc_error: "mfa_required",
        svc_error_description: "A second factor is required",
        svc_error_data: data,
        svc_state: state,
      })}`;
      return await client.auth.completeRedirect().then(() => null, (error) => error);
    };
    const begun = () =>
      new URL(client.auth.oauthAddress("github", location.href)).searchParams.get("app_state") ?? "";
    assert.deepEqual(challengeOf(await come(JSON.stringify(waiting), begun())), waiting);
    for (const data of [JSON.stringify(waiting), "{"]) {
      const error = await come(data, "another");
      assert.equal(error.code, "mfa_required");
      assert.equal(challengeOf(error), null);
    }
  } finally {
    for (const [key, descriptor] of before) {
      if (descriptor === undefined) delete scope[key];
      else Object.defineProperty(scope, key, descriptor);
    }
  }
});
