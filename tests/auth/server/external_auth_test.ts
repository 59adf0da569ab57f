/** Sign-in with external providers: a real OpenID provider, a whole server, and a browser. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { launchChromium } from "../../support/chromium.ts";
import { testConfig } from "../../server/support/fake_backend.ts";
import { chromium, needs } from "../../support/services.ts";
import { until } from "../../support/waiting.ts";
import { follow } from "../support/follow.ts";
import { openIdSecret, type OpenIdServer, startOpenIdServer } from "../support/open_id_server.ts";
import { signed, type SigningKey, signingKey } from "../support/stand_in.ts";
import { startTestServer, type TestServer } from "./test_server.ts";

const functions = {
  "who.ts": `
import { untypedQuery } from "syncline/server";
export const am = untypedQuery({ args: {}, handler: (ctx) => [ctx.auth.userId(), ctx.auth.identity()?.claims.client_id ?? null] });
`,
  "http.ts": `
import { httpAction, httpRouter } from "syncline/server";
const http = httpRouter();
http.route({ method: "GET", path: "/who", handler: httpAction(async (ctx) => Response.json(await ctx.runQuery("who:am"))) });
export default http;
`,
};

const PAGE = `<!doctype html><title>App</title>
<button id="redirect">Sign in with work</button><button id="popup">Sign in with work in a window</button>
<button id="link">Link home</button><button id="unlink">Unlink home</button><button id="out">Sign out</button>
<p role="status"></p><p id="result"></p><p id="identities"></p>
<script type="module">
import { SynclineClient } from "/_/client.js";
const client = window.client = new SynclineClient(location.origin);
const { auth } = client;
const show = (id, value) => document.querySelector(id).textContent = JSON.stringify(value);
window.states = [];
client.onAuthState(({ status }) => states.push(status));
setInterval(() => document.querySelector("[role=status]").textContent = client.authState().status, 20);
const at = (id, run) => document.querySelector(id).onclick = async () => {
  show("#result", "under way");
  try { show("#result", await run() ?? "done"); } catch (error) { show("#result", [error.name, error.code]); }
};
at("#redirect", () => auth.signInWithOAuth("work"));
at("#popup", () => auth.signInWithPopup("work"));
at("#link", () => auth.linkIdentity("home"));
at("#unlink", async () => auth.unlinkIdentity((await auth.identities()).find(({ provider }) => provider === "home").identityId));
at("#out", () => auth.signOut());
auth.onRefusal((error) => document.title = [error.name, error.code].join(" "));
await auth.completeRedirect().then((result) => show("#result", result), (error) => show("#result", [error.name, error.code]));
window.identities = async () => (await auth.identities()).map(({ provider }) => provider);
</script>`;

interface Setup extends AsyncDisposable {
  readonly op: OpenIdServer;
  readonly server: TestServer;
  /** An issuer whose tokens the test signs. */
  readonly maker: { readonly issuer: string; readonly key: SigningKey };
}

async function setUp(): Promise<Setup> {
  const stack = new AsyncDisposableStack();
  const op = stack.use(await startOpenIdServer());
  const folder = stack.adopt(await Deno.makeTempDir(), (path) => Deno.remove(path, { recursive: true }));
  await Deno.writeTextFile(join(folder, "index.html"), PAGE);
  await Deno.writeTextFile(join(folder, "secret"), openIdSecret);
  const key = await signingKey("ES256", "made");
  const keys = stack.adopt(
    Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen: () => {} },
      () => Response.json({ keys: [key.jwk] }),
    ),
    (served) => served.shutdown(),
  );
  const issuer = `http://127.0.0.1:${keys.addr.port}`;
  const provider = { preset: "oidc", issuer: op.issuer, clientId: "app", clientSecret: { file: "secret" } };
  await Deno.writeTextFile(
    join(folder, "auth.json"),
    JSON.stringify({
      providers: { work: provider, home: provider },
      issuers: [
        { issuer: op.issuer, audience: ["urn:api", "urn:short"] },
        { issuer, audience: "app", keys: `${issuer}/keys` },
      ],
    }),
  );
  const server = stack.use(
    await startTestServer({
      functions,
      config: { staticDir: folder, dev: true },
      accounts: {
        authConfig: { kind: "file", path: join(folder, "auth.json") },
        policy: { ...testConfig({ dataDir: folder }).accounts.policy, anonymous: true },
      },
    }),
  );
  op.serve(["work", "home"].map((name) => `${server.url}/api/auth/oauth/${name}/callback`));
  return { op, server, maker: { issuer, key }, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** Each reason to refuse a token, over a socket, which is closed, and over HTTP. */
async function refusals({ server, maker: { issuer, key } }: Setup): Promise<void> {
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: issuer, sub: "ann", aud: "app", iat: now, exp: now + 600 };
  const good = await signed(claims, key);
  const cases: readonly (readonly [token: string, error: string])[] = [
    ["not a token", "malformed access token"],
    [`${good.split(".").slice(0, 2).join(".")}.${"A".repeat(86)}`, "invalid access token signature"],
    [await signed({ ...claims, iss: "http://127.0.0.1:1" }, key), "unknown token issuer"],
    [await signed(claims, { ...key, kid: "another" }), "unknown token signing key"],
    [await signed({ ...claims, aud: "other" }, key), "invalid access token claims"],
    [await signed({ ...claims, nbf: now + 3_600 }, key), "access token not yet valid"],
    [await signed({ ...claims, exp: now - 1 }, key), "access token expired"],
  ];
  for (const [token, error] of cases) {
    await using socket = await server.socket(token);
    await socket.closed;
    assert.deepEqual([socket.messages.at(-1).type, socket.messages.at(-1).error], ["AuthError", error]);
    const { status, body } = await server.post("/api/query", { path: "who:am", args: {} }, { bearer: token });
    assert.deepEqual([status, body.errorData.code], [401, "invalid_token"], error);
  }
  const accepted = await server.post("/api/query", { path: "who:am", args: {} }, { bearer: good });
  assert.equal(accepted.status, 200);
}

Deno.test({
  name:
    "OA2 OA3 OA8 OA10 XI1 XI2 XI3 XI4 XI5 XI6 XI7 XI8 users sign in with a real provider, and its tokens work on sockets, in calls and in routes",
  // The provider keeps its own timers.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using setup = await setUp();
    const { op, server } = setup;
    const app = `${server.url}/app`;
    const signIn = async () => {
      const landed = await follow(
        `${server.url}/api/auth/oauth/work?redirect_to=${encodeURIComponent(app)}`,
        app,
      );
      return new URLSearchParams(landed.hash.slice(1));
    };
    const ann = await signIn();
    const { body: who } = await server.post("/api/query", { path: "_auth:account", args: {} }, {
      bearer: ann.get("svc_access_token") ?? "",
    });
    assert.deepEqual([who.value.userId, who.value.email, who.value.emailVerified, who.value.name], [
      ann.get("svc_user_id"),
      "ann@example.com",
      true,
      "ANN",
    ]);
    op.person = "bob";
    assert.notEqual((await signIn()).get("svc_user_id"), ann.get("svc_user_id"));
    op.person = null;
    assert.equal((await signIn()).get("svc_error"), "access_denied");
    op.person = "ann";

    // A sign-in in progress survives a restart.
    const begun = await fetch(`${server.url}/api/auth/oauth/work?redirect_to=${encodeURIComponent(app)}`, {
      redirect: "manual",
    });
    await begun.body?.cancel();
    const callback = `${server.url}/api/auth/oauth/work/callback`;
    const back = await follow(begun.headers.get("location") ?? "", callback);
    await server.restart();
    const finished = await fetch(`${server.url}/api/auth/oauth/work/callback${back.search}`, {
      redirect: "manual",
      headers: { cookie: (begun.headers.get("set-cookie") ?? "").split(";")[0] ?? "" },
    });
    await finished.body?.cancel();
    const kept = new URL(finished.headers.get("location") ?? "");
    assert.equal(new URLSearchParams(kept.hash.slice(1)).get("svc_user_id"), ann.get("svc_user_id"));

    const token = await op.robotToken("urn:api");
    const { body: called } = await server.post("/api/query", { path: "who:am", args: {} }, { bearer: token });
    assert.equal(called.value[1], "robot");
    const routed = await fetch(`${server.url}/who`, { headers: { Authorization: `Bearer ${token}` } });
    assert.deepEqual(await routed.json(), called.value);
    const other = await op.robotToken("urn:other");
    assert.equal(
      (await server.post("/api/query", { path: "who:am", args: {} }, { bearer: other })).status,
      401,
    );
    const refusedRoute = await fetch(`${server.url}/who`, { headers: { Authorization: `Bearer ${other}` } });
    assert.equal((await refusedRoute.json()).errorData.code, "invalid_token");
    await using refused = await server.socket(other);
    await refused.closed;
    assert.equal(refused.messages.at(-1).error, "invalid access token claims");
    await refusals(setup);
    await using brief = await server.socket(await op.robotToken("urn:short"));
    await brief.closed;
    assert.equal(brief.messages.at(-1).error, "access token expired");
    await using socket = await server.socket(token);
    await socket.identityVersion(1);
    const setupToken = /svc_setup_token=(.+)/.exec(server.setupLink ?? "")?.[1];
    const admin = await server.post("/api/auth/admin/setup", {
      token: setupToken,
      email: "root@example.com",
      password: "correct horse",
    });
    assert.equal(admin.status, 200);
    const deleted = await server.post("/api/action", {
      path: "_admin/users:remove",
      args: { userId: called.value[0] },
    }, { bearer: admin.body.accessToken });
    assert.equal(deleted.status, 200, JSON.stringify(deleted.body));
    await socket.closed;
    assert.equal(socket.messages.at(-1).error, "session has ended");
  },
});

Deno.test({
  ...needs(
    chromium,
    "OA10 OA11 OK1 OK4 AN2 a person signs in with another account in a browser, links, unlinks and signs out in two tabs, and signs up after an anonymous sign-in",
  ),
  // The browser's driver and the provider keep their own timers and pipes.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using setup = await setUp();
    const { op, server } = setup;
    const browser = await launchChromium();
    try {
      const context = await browser.newContext();
      const page = await context.newPage();
      const status = (at: typeof page, text: string) =>
        at.getByRole("status").filter({ hasText: text }).waitFor();
      const result = (at: typeof page, text: string) =>
        at.locator("#result").filter({ hasText: text }).waitFor();
      const identities = () => page.evaluate("identities()");
      await page.goto(server.url);
      await status(page, "signedOut");

      await page.click("#redirect");
      await result(page, '{"type":"signedIn"}');
      await status(page, "signedIn");
      assert.equal(new URL(page.url()).hash, "", "the tokens stay in the address");
      assert.deepEqual(await identities(), ["work"]);

      const other = await context.newPage();
      await other.goto(server.url);
      await status(other, "signedIn");
      await page.click("#out");
      await status(page, "signedOut");
      await status(other, "signedOut");

      op.person = null;
      await page.click("#redirect");
      await result(page, '["AccountError","access_denied"]');
      await other.waitForFunction("document.title === 'AccountError access_denied'");
      await page.click("#popup");
      await result(page, '["AccountError","access_denied"]');
      op.person = "ann";
      await page.click("#popup");
      await result(page, '"done"');
      await status(page, "signedIn");
      await status(other, "signedIn");
      await until(() => context.pages().length === 2, { what: "the window is closed" });

      op.person = "ann at home";
      await page.click("#link");
      await result(page, '{"type":"linked","provider":"home"}');
      assert.deepEqual(await identities(), ["work", "home"]);
      await page.click("#unlink");
      await result(page, "done");
      assert.deepEqual(await identities(), ["work"]);
      await page.click("#out");
      await status(other, "signedOut");

      const userId = () => page.evaluate("client.auth.account().then((account) => account.userId)");
      const signInAnonymously = async () => {
        await page.evaluate("client.auth.signInAt('anonymous', {})");
        await status(page, "signedIn");
        await status(other, "signedIn");
        return await userId();
      };
      for (
        const [button, person, shown, provider] of [
          ["#link", "carol", '{"type":"signedIn"}', "home"],
          ["#redirect", "eve", '{"type":"signedIn"}', "work"],
          ["#popup", "fay", '"done"', "work"],
        ] as const
      ) {
        const userBefore = await signInAnonymously();
        op.person = person;
        await page.click(button);
        await result(page, shown);
        await status(page, "signedIn");
        assert.deepEqual([await userId(), await identities()], [userBefore, [provider]], button);
        await page.click("#out");
        await status(other, "signedOut");
      }

      const anonymous = await signInAnonymously();
      for (const tab of [page, other]) await tab.evaluate("states.length = 0");
      await page.evaluate("client.auth.signUp({ email: 'dan@example.com', password: 'correct horse' })");
      await page.waitForFunction("client.auth.account().then((account) => account?.anonymous === false)");
      assert.equal(await userId(), anonymous);
      await other.waitForFunction("client.auth.account().then((account) => account?.anonymous === false)");
      for (const tab of [page, other]) {
        assert.ok(!(await tab.evaluate("states") as string[]).includes("signedOut"), "a tab was signed out");
      }
    } finally {
      await browser.close();
    }
  },
});
