/** Own account of signed-in users, against a real server. */
import assert from "node:assert/strict";
import { type OwnSession, ownSessions, SynclineClient } from "../../mod/client/mod.ts";
import { until } from "../support/waiting.ts";
import { memoryStorage, withServer } from "./support/real_server.ts";

const account = { email: "ada@example.com", password: "correct horse" };

Deno.test("users change their name and password, and rejected changes report why", async () => {
  await withServer(async (url) => {
    const client = new SynclineClient(url, { accounts: { storage: memoryStorage() } });
    try {
      const { auth } = client;
      assert.equal(await auth.account(), null);
      await assert.rejects(auth.sessions(), { name: "FunctionError", code: "not_signed_in" });
      await assert.rejects(auth.signOutEverywhere(), { name: "FunctionError", code: "not_signed_in" });
      await auth.signUp(account);
      await auth.setName("Ada");
      const { userId, ...rest } = await auth.account() ?? assert.fail("no user is signed in");
      assert.deepEqual(rest, {
        email: account.email,
        emailVerified: false,
        name: "Ada",
        hasPassword: true,
        anonymous: false,
        profile: null,
      });
      assert.deepEqual(client.authState(), { status: "signedIn", userId });
      const newPassword = "battery staple";
      await assert.rejects(auth.changePassword({ currentPassword: "wrong horse", newPassword }), {
        code: "invalid_credentials",
      });
      await auth.changePassword({ currentPassword: account.password, newPassword });
      await assert.rejects(auth.changeEmail({ email: "ada@example.org", password: newPassword }), {
        code: "mail_disabled",
      });
      await auth.signOut();
      await assert.rejects(auth.signIn(account), { code: "invalid_credentials" });
      await auth.signIn({ ...account, password: newPassword });
    } finally {
      client.close();
    }
  });
});

Deno.test("sessions are listed live and ended one by one or all together, the own one included", async () => {
  await withServer(async (url) => {
    const open = () => new SynclineClient(url, { accounts: { storage: memoryStorage() } });
    const clients = [open(), open(), open()] as const;
    const [here, there, elsewhere] = clients;
    try {
      await here.auth.signUp(account);
      await there.auth.signIn(account);
      await elsewhere.auth.signIn(account);
      await until(() => clients.every((client) => client.authState().status === "signedIn"));
      let live: OwnSession[] = [];
      const [signedOut, errors]: [SynclineClient[], unknown[]] = [[], []];
      for (const client of clients) {
        client.onAuthState(({ status }) => status === "signedOut" && signedOut.push(client));
      }
      here.subscribe(ownSessions, {}, (sessions) => live = sessions, (error) => errors.push(error.code));
      await until(() => live.length === 3, { what: "the list of three sessions" });
      assert.deepEqual(live.map(({ current }) => current), [false, false, true]);
      assert.deepEqual(await there.auth.sessions().then((list) => list.map(({ current }) => current)), [
        false,
        true,
        false,
      ]);
      await assert.rejects(here.auth.signOutSession("nothing"), { code: "session_not_found" });
      const thereSession = live[1]?.sessionId ?? "";
      await here.auth.signOutSession(thereSession);
      await until(() => live.length === 2, { what: "the list of two sessions" });
      await until(() => signedOut.includes(there), { what: "the end of the other session" });
      assert.equal(await here.auth.signOutEverywhere({ keepCurrent: true }), 1);
      await until(() => signedOut.includes(elsewhere), { what: "the end of all others" });
      assert.deepEqual(here.authState().status, "signedIn");
      assert.equal(await here.auth.signOutEverywhere(), 1);
      await until(() => signedOut.includes(here), { what: "the own end" });
      await until(() => errors.length > 0, { what: "the error of the list without a user" });
      assert.deepEqual(errors, ["not_signed_in"]);
    } finally {
      for (const client of clients) client.close();
    }
  });
});
