/** The access token in a cookie, for servers that render pages. */
import assert from "node:assert/strict";
import { tokenCookie } from "syncline/token-cookie";
import { memoryStorage } from "./support/real_server.ts";

/** Returns an unsigned token that expires after `seconds`. */
function token(seconds: number): string {
  const claims = { iat: Math.floor(Date.now() / 1000), exp: Math.floor(Date.now() / 1000) + seconds };
  return `e.${btoa(JSON.stringify(claims))}.s`;
}

/** Lets the storage believe that it runs on a page, and returns the cookies that it sets. */
function pretendPage(protocol: string): { cookies: string[] } & Disposable {
  const cookies: string[] = [];
  const scope = globalThis as { document?: unknown; location?: unknown };
  const { location } = scope;
  scope.document = {
    set cookie(value: string) {
      cookies.push(value);
    },
  };
  Object.defineProperty(scope, "location", { value: { protocol }, configurable: true });
  return {
    cookies,
    [Symbol.dispose]() {
      delete scope.document;
      Object.defineProperty(scope, "location", { value: location, configurable: true });
    },
  };
}

Deno.test("the cookie has the access token for its lifetime, and no other part of the stored tokens", async () => {
  using page = pretendPage("https:");
  const inner = memoryStorage();
  const storage = tokenCookie({ storage: inner, name: "t" });
  const accessToken = token(600);
  const tokens = JSON.stringify({ accessToken, refreshToken: "secret", userId: "u" });
  await storage.setItem("key", tokens);
  await storage.setItem("key attempt", "an id");
  await storage.removeItem("key attempt");
  assert.equal(await storage.getItem("key"), tokens);
  assert.equal(await inner.getItem("key"), tokens);
  assert.equal(page.cookies.length, 2, "set with the tokens, and again when a page loads them");
  for (const cookie of page.cookies) {
    const [, value, seconds] = /^t=(.+); Path=\/; SameSite=Lax; Max-Age=(\d+); Secure$/.exec(cookie) ?? [];
    assert.equal(value, accessToken);
    assert.ok(Number(seconds) > 590 && Number(seconds) <= 600, seconds);
  }
  await storage.removeItem("key");
  assert.equal(page.cookies.at(-1), "t=; Path=/; SameSite=Lax; Max-Age=0; Secure");
});

Deno.test("an expired token, other contents and a missing item remove the cookie; a page over http sets one", async () => {
  using page = pretendPage("http:");
  const storage = tokenCookie({ storage: memoryStorage() });
  await storage.setItem("key", JSON.stringify({ accessToken: token(-5), refreshToken: "r" }));
  await storage.setItem("key", "not JSON");
  await storage.getItem("missing");
  const ends = page.cookies.map((cookie) => cookie.replace(/^[^;]*; /, ""));
  assert.deepEqual(new Set(ends), new Set(["Path=/; SameSite=Lax; Max-Age=0"]));
  assert.equal(ends.length, 3);
});

Deno.test("without a page, the storage sets no cookie and keeps tokens in memory", async () => {
  const storage = tokenCookie();
  await storage.setItem("key", "value");
  assert.equal(await storage.getItem("key"), "value");
  assert.equal("document" in globalThis, false);
});
