/** Anonymous users of a client, against a real server. */
import assert from "node:assert/strict";
import { addPasskey, signInAnonymously } from "../../mod/client/account_features/mod.ts";
import { ownAccount, SynclineClient } from "../../mod/client/mod.ts";
import { type PasskeyOptions, TestAuthenticator } from "../auth/support/test_authenticator.ts";
import { until } from "../support/waiting.ts";
import { memoryStorage, withServer } from "./support/real_server.ts";

const account = { email: "ada@example.com", password: "correct horse" };

Deno.test("AN2 a client signs in anonymously and signs up as the same user, without being signed out in between", async () => {
  await withServer(async (url) => {
    const client = new SynclineClient(url, { accounts: { storage: memoryStorage() } });
    try {
      await signInAnonymously(client);
      await until(() => client.authState().status === "signedIn");
      const { userId, anonymous, email } = await client.auth.account() ?? assert.fail("no user is signed in");
      assert.deepEqual([anonymous, email], [true, null]);
      const states = new Set<string>();
      client.onAuthState(({ status }) => states.add(status));
      const shown: (boolean | undefined)[] = [];
      client.subscribe(ownAccount, {}, (value) => void shown.push(value?.anonymous));
      await until(() => shown.length > 0);
      assert.deepEqual(await client.auth.signUp(account), { verificationRequired: false });
      await until(() => shown.at(-1) === false);
      assert.deepEqual((await client.auth.account())?.userId, userId);
      assert.ok(!states.has("signedOut"), [...states].join());
      assert.ok(shown.every((value) => value !== undefined));
      await client.auth.signOut();
      await client.auth.signIn(account);
      await until(() => client.authState().status === "signedIn");
      assert.deepEqual(client.authState(), { status: "signedIn", userId });
    } finally {
      client.close();
    }
  }, ["--anonymous-sign-in"]);
});

Deno.test("AN2 a client signs up with a passkey as the same user in another session, without being signed out in between", async () => {
  await withServer(async (url) => {
    const authenticator = new TestAuthenticator({ origin: url.replace("127.0.0.1", "localhost") });
    // The browser's part.
    const page = globalThis as { PublicKeyCredential?: unknown };
    page.PublicKeyCredential = { parseCreationOptionsFromJSON: (options: PasskeyOptions) => options };
    const create = ({ publicKey }: { readonly publicKey: PasskeyOptions }) =>
      Promise.resolve({ toJSON: () => authenticator.create(publicKey) });
    Object.defineProperty(navigator, "credentials", { value: { create }, configurable: true });
    const client = new SynclineClient(url, { accounts: { storage: memoryStorage() } });
    try {
      await signInAnonymously(client);
      const { userId } = await client.auth.account() ?? assert.fail("no user is signed in");
      const states = new Set<string>();
      client.onAuthState(({ status }) => states.add(status));
      const [before] = await client.auth.sessions();
      assert.equal(await addPasskey(client, { name: "Phone" }), undefined);
      const account = await client.auth.account();
      assert.deepEqual([account?.userId, account?.anonymous], [userId, false]);
      const sessions = await client.auth.sessions();
      assert.equal(sessions.length, 1);
      assert.notEqual(sessions[0]?.sessionId, before?.sessionId);
      assert.ok(!states.has("signedOut"), [...states].join());
      // With an account, a second passkey is added in the session, which has proved the first.
      assert.equal(typeof await addPasskey(client), "string");
    } finally {
      client.close();
      delete page.PublicKeyCredential;
      Reflect.deleteProperty(navigator, "credentials");
    }
  }, ["--anonymous-sign-in"]);
});

Deno.test("AN1 a server without the option refuses anonymous sign-ins", async () => {
  await withServer(async (url) => {
    const client = new SynclineClient(url, { accounts: { storage: memoryStorage() } });
    try {
      await assert.rejects(signInAnonymously(client), { name: "AccountError", code: "anonymous_disabled" });
    } finally {
      client.close();
    }
  });
});
