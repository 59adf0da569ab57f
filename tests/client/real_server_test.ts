/** The client against a real server: live results, errors, accounts. */
import assert from "node:assert/strict";
import { AccountError, FunctionError, SynclineClient, SynclineHttpClient } from "../../mod/client/mod.ts";
import type { TokenStorage } from "../../mod/client/mod.ts";
import { until } from "../support/waiting.ts";
import { memoryStorage, withServer } from "./support/real_server.ts";

Deno.test("results are live, writes are visible when they resolve, errors carry the data of the app", async () => {
  await withServer(async (url) => {
    const [writer, reader] = [new SynclineClient(url), new SynclineClient(url)];
    const http = new SynclineHttpClient(url);
    try {
      const seen: unknown[] = [];
      reader.subscribe("entries:numbers", { author: "a" }, (numbers) => seen.push(numbers));
      let own: unknown = null;
      writer.subscribe("entries:numbers", { author: "a" }, (numbers) => own = numbers);
      for (const n of [1, 2, 3]) {
        assert.equal(await writer.mutation("entries:append", { author: "a", n }), n);
        assert.equal((own as number[]).at(-1), n);
      }
      await until(() => JSON.stringify(seen.at(-1)) === "[1,2,3]", { what: "the reader's result" });
      assert.deepEqual(await http.query("entries:numbers", { author: "a" }), [1, 2, 3]);
      assert.equal(await http.mutation("entries:append", { author: "b", n: 4 }), 4);
      assert.deepEqual(await reader.query("entries:numbers", { author: "b" }), [4]);
      for (const client of [writer, http]) {
        await assert.rejects(client.mutation("entries:append", { author: "a", n: 49 }), (error) => {
          assert(error instanceof FunctionError);
          assert.deepEqual([error.code, error.data, error.message], ["refused", 49, "This one is refused"]);
          return true;
        });
        await assert.rejects(client.mutation("entries:append", { author: "a" }), /n/);
        await assert.rejects(client.mutation("entries:nothing", {}), FunctionError);
        await assert.rejects(client.query("entries:append", { author: "a", n: 1 }), FunctionError);
      }
      assert.deepEqual(
        await reader.query("entries:numbers", { author: "a" }),
        [1, 2, 3],
        "nothing was left behind",
      );
    } finally {
      writer.close();
      reader.close();
    }
  });
});

Deno.test("an account signs up, authenticates the socket, and a sign-out ends it in every client immediately", async () => {
  await withServer(async (url) => {
    const storage = memoryStorage();
    const open = () => new SynclineClient(url, { accounts: { storage } });
    const here = open();
    try {
      const account = { email: "ada@example.com", password: "correct horse" };
      await assert.rejects(here.auth.signIn(account), (error) => {
        assert(error instanceof AccountError);
        assert.equal(error.code, "invalid_credentials");
        return true;
      });
      assert.deepEqual(await here.auth.signUp(account), { verificationRequired: false });
      await until(() => here.authState().status === "signedIn", { what: "the sign-up" });
      const state = here.authState();
      assert(state.status === "signedIn" && state.userId !== null);
      // A client that starts later finds the tokens in the shared storage.
      const there = open();
      await until(() => there.authState().status === "signedIn", { what: "the stored session" });
      await here.auth.signOut();
      await until(() => there.authState().status === "signedOut", { what: "the end of the session" });
      await until(() => there.connectionState().isConnected, { what: "the anonymous connection" });
      assert.deepEqual(await there.query("entries:numbers", { author: "nobody" }), []);
      there.close();
    } finally {
      here.close();
    }
  });
});

Deno.test("ten tabs that share only a session refresh it at the same times and stay signed in", async () => {
  const flags = ["--access-token-ttl", "2s"];
  await withServer(async (url) => {
    const storage = memoryStorage();
    const account = { email: "ada@example.com", password: "correct horse" };
    const refreshTokens = new Set<string>();
    // Outside a page there are no locks, so each tab connects to the server separately.
    const watched: TokenStorage = {
      ...storage,
      setItem: (key, value) => {
        const { refreshToken } = value.startsWith("{") ? JSON.parse(value) : {};
        if (refreshToken !== undefined) refreshTokens.add(refreshToken);
        return storage.setItem(key, value);
      },
    };
    const tabs = Array.from(
      { length: 10 },
      () => new SynclineClient(url, { accounts: { storage: watched } }),
    );
    const signedOut: number[] = [];
    try {
      await tabs[0]?.auth.signUp(account);
      for (const [i, tab] of tabs.entries()) {
        tab.onAuthState((state) => state.status === "signedOut" && signedOut.push(i));
      }
      await until(
        () => tabs.every((tab) => tab.authState().status === "signedIn"),
        { what: "the sign-in of all tabs" },
      );
      signedOut.length = 0;
      await until(() => refreshTokens.size >= 4, { what: "three renewals" });
      // On a slow machine a token may expire before its renewal. Its tab is loading until then, but not signed out.
      await until(
        () => tabs.every((tab) => tab.authState().status === "signedIn"),
        { what: "the renewals of all tabs" },
      );
      assert.deepEqual(signedOut, []);
    } finally {
      for (const tab of tabs) tab.close();
    }
  }, flags);
});
