/** `client.auth`: signing in and out, renewal by one tab at a time, links and redirects. */
import assert from "node:assert/strict";
import { AccountError, SynclineClient, type TokenStorage } from "../../mod/client/mod.ts";
import * as clientLimits from "../../mod/client/limits.ts";
import { AccountServer, failure } from "./support/account_server.ts";
import { FakeClock, settle } from "./support/fake_clock.ts";
import { type FakeSocket, FakeSockets } from "./support/fake_socket.ts";
import { transition } from "./support/test_client.ts";

class MemoryStorage implements TokenStorage {
  readonly items = new Map<string, string>();
  get length(): number {
    return this.items.size;
  }
  key(index: number): string | null {
    return [...this.items.keys()][index] ?? null;
  }
  getItem(key: string): string | null {
    return this.items.get(key) ?? null;
  }
  setItem(key: string, value: string): void {
    this.items.set(key, value);
  }
  removeItem(key: string): void {
    this.items.delete(key);
  }
}

class Tab implements Disposable {
  readonly client: SynclineClient;
  readonly sockets = new FakeSockets();
  readonly states: string[] = [];

  constructor(
    { clock, server, storage }: { clock: FakeClock; server: AccountServer; storage: TokenStorage },
  ) {
    this.client = new SynclineClient("http://app.test", {
      webSocket: this.sockets.factory,
      clock,
      random: () => 0.5,
      polling: false,
      accounts: { storage, fetch: server.fetch },
    });
    this.client.authState();
    this.client.onAuthState((state) =>
      this.states.push(state.status === "signedIn" ? `signedIn ${state.userId}` : state.status)
    );
  }

  /** Opens the socket and answers the client's requests. */
  async open(): Promise<FakeSocket> {
    this.sockets.last.open();
    await turns();
    return this.sockets.last;
  }

  [Symbol.dispose](): void {
    this.client.close();
  }
}

async function stored(storage: TokenStorage): Promise<string | null> {
  const text = await storage.getItem("syncline-auth http://app.test/");
  return text === null ? null : (JSON.parse(text) as { refreshToken: string }).refreshToken;
}

function world() {
  const clock = new FakeClock();
  return { clock, server: new AccountServer(clock), storage: new MemoryStorage() };
}

/** Responses are read in ticks of the event loop, not only in promise callbacks. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 8; turn++) {
    await settle();
    await new Promise((resolve) => setTimeout(resolve));
  }
}

function tokens(socket: FakeSocket): (string | null)[] {
  return socket.sent.flatMap((message) => message.type === "Authenticate" ? [message.token] : []);
}

Deno.test("no user is signed in at first; a sign-in authenticates the connection before later calls", async () => {
  const { clock, server, storage } = world();
  using tab = new Tab({ clock, server, storage });
  assert.deepEqual(tab.client.authState(), { status: "loading" });
  const socket = await tab.open();
  assert.deepEqual(tab.states, ["signedOut"]);
  await tab.client.auth.signIn({ email: "ada", password: "right" });
  tab.client.mutation("m", {}).catch(() => {});
  await turns();
  assert.deepEqual(socket.sent.map(({ type }) => type), ["Connect", "Authenticate", "Mutation"]);
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  assert.deepEqual(tab.states, ["signedOut", "signedIn ada"]);
  assert.deepEqual(tab.client.authState(), { status: "signedIn", userId: "ada" });
});

Deno.test("the next page finds the stored session", async () => {
  const { clock, server, storage } = world();
  using first = new Tab({ clock, server, storage });
  await first.client.auth.signIn({ email: "ada", password: "right" });
  using second = new Tab({ clock, server, storage });
  const socket = await second.open();
  assert.equal(tokens(socket).length, 1);
  assert.equal(server.requests.length, 1, "a token with life left is not renewed");
});

Deno.test("sign-out makes the connection anonymous and ends the session on the server", async () => {
  const { clock, server, storage } = world();
  using tab = new Tab({ clock, server, storage });
  const socket = await tab.open();
  await tab.client.auth.signIn({ email: "ada", password: "right" });
  await turns();
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  await tab.client.auth.signOut();
  await turns();
  assert.equal(tokens(socket).at(-1), null);
  assert.deepEqual(server.requests.at(-1), ["signout", { refreshToken: "refresh1" }]);
  assert.equal(storage.items.size, 0);
  assert.deepEqual(tab.states.at(-1), "signedOut");
});

Deno.test("a session that ended signs out; an unreachable server does not", async () => {
  const { clock, server, storage } = world();
  using tab = new Tab({ clock, server, storage });
  await tab.client.auth.signIn({ email: "ada", password: "right" });
  const socket = await tab.open();
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  server.answerNext = () => Promise.reject(new TypeError("network"));
  socket.receive({ type: "AuthError", error: "access token expired" });
  await turns();
  assert.equal(await stored(storage), "refresh1", "nothing is known of the session");
  await clock.advance(2000);
  await turns();
  const again = await tab.open();
  assert.equal(tokens(again).length, 1, "asked again with success");
  again.receive(transition([[0, 0, 0], [0, 1, 1]]));
  server.endAll();
  again.receive({ type: "AuthError", error: "session has ended" });
  await turns();
  assert.equal(storage.items.size, 0);
  assert.equal(tab.states.at(-1), "signedOut");
});

Deno.test("tabs that renew at the same moment renew once", async () => {
  const { clock, server, storage } = world();
  using tab = new Tab({ clock, server, storage });
  await tab.client.auth.signIn({ email: "ada", password: "right" });
  await turns();
  const [[key = "", text = ""] = []] = [...storage.items];
  const page = pretendPage();
  try {
    const tabs = [1, 2, 3].map(() => new Tab({ clock, server, storage }));
    const opened = await Promise.all(tabs.map((each) => each.open()));
    for (const socket of opened) {
      socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
      socket.receive({ type: "AuthError", error: "access token expired" });
    }
    await turns();
    assert.deepEqual(server.refreshes.map(({ refreshToken }) => refreshToken), ["refresh1"]);
    assert.notEqual(storage.items.get(key), text);
    for (const each of tabs) each.client.close();
  } finally {
    page[Symbol.dispose]();
  }
});

Deno.test("a sign-in without a response delays the sign-ins of other tabs for a bounded time", async () => {
  const surroundings = world();
  const { clock, server, storage } = surroundings;
  using _page = pretendPage();
  using one = new Tab(surroundings);
  using other = new Tab(surroundings);
  const aborted: boolean[] = [];
  server.answerNext = (signal) => {
    signal.addEventListener("abort", () => aborted.push(true));
    return new Promise(() => {});
  };
  const lost = one.client.auth.signIn({ email: "ada", password: "right" });
  const rejected = assert.rejects(lost, { message: "No response in time" });
  await turns();
  let isSignedIn = false;
  const signedIn = other.client.auth.signIn({ email: "ada", password: "right" }).then(() =>
    isSignedIn = true
  );
  await clock.advance(clientLimits.httpCallMs - 1);
  await turns();
  assert.equal(isSignedIn, false, "it waits for the first one");
  await clock.advance(1);
  await rejected;
  await signedIn;
  assert.deepEqual(aborted, [true]);
  assert.equal(await stored(storage), "refresh1");
});

/** A signed-in client whose token the server has just refused. */
async function refused({ clock, server, storage }: ReturnType<typeof world>): Promise<Tab> {
  const tab = new Tab({ clock, server, storage });
  await tab.client.auth.signIn({ email: "ada", password: "right" });
  const socket = await tab.open();
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  socket.receive({ type: "AuthError", error: "access token expired" });
  return tab;
}

Deno.test("a lost response with new tokens is requested again, and the user stays signed in", async () => {
  const surroundings = world();
  const { clock, server, storage } = surroundings;
  server.loseNextRefresh(() => Promise.reject(new TypeError("connection reset")));
  using tab = await refused(surroundings);
  await turns();
  assert.equal(await stored(storage), "refresh1");
  await clock.advance(1_000);
  await turns();
  assert.equal(await stored(storage), "refresh2");
  const again = await tab.open();
  again.receive(transition([[0, 0, 0], [0, 1, 1]]));
  assert.equal(tab.states.at(-1), "signedIn ada");
  const [first, second] = server.refreshes;
  assert.match(first?.attemptId ?? "", /^[\da-f-]{36}$/);
  assert.deepEqual(second, first);
  assert.equal(storage.items.size, 1, "what named the attempt is gone");
});

Deno.test("a missing response is requested again while the first may still arrive", async () => {
  for (const firstArrives of [true, false]) {
    const surroundings = world();
    const { clock, server, storage } = surroundings;
    const late = Promise.withResolvers<Response>();
    server.loseNextRefresh(() => late.promise);
    using _tab = await refused(surroundings);
    await turns();
    if (firstArrives) server.loseNextRefresh(() => new Promise(() => {}));
    await clock.advance(clientLimits.refreshAgainMs);
    await turns();
    assert.equal(server.refreshes.length, 2);
    if (firstArrives) late.resolve(server.lost[0] ?? failure(500, "internal"));
    await turns();
    assert.equal(await stored(storage), "refresh2");
  }
});

Deno.test("a page closed before its new tokens arrived finds them when it is opened again", async () => {
  const surroundings = world();
  const { server, storage } = surroundings;
  server.loseNextRefresh(() => new Promise(() => {}));
  const closed = await refused(surroundings);
  await turns();
  closed.client.close();
  using tab = new Tab(surroundings);
  const socket = await tab.open();
  socket.receive({ type: "AuthError", error: "access token expired" });
  await turns();
  assert.equal(await stored(storage), "refresh2");
  assert.equal(server.refreshes[0]?.attemptId, server.refreshes[1]?.attemptId);
  assert.ok(!tab.states.includes("signedOut"));
});

Deno.test("each refresh is a separate attempt", async () => {
  const surroundings = world();
  using tab = await refused(surroundings);
  await turns();
  await surroundings.clock.advance(900_000);
  await turns();
  assert.equal(tab.states.at(-1), "signedIn ada");
  const attempts = surroundings.server.refreshes.map(({ attemptId }) => attemptId);
  assert.ok(attempts.length >= 2);
  assert.equal(new Set(attempts).size, attempts.length);
});

Deno.test("a sign-out while the server renews is not undone by the answer", async () => {
  const { clock, server, storage } = world();
  using tab = new Tab({ clock, server, storage });
  await tab.client.auth.signIn({ email: "ada", password: "right" });
  const socket = await tab.open();
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  const answer = Promise.withResolvers<Response>();
  server.answerNext = () => answer.promise;
  socket.receive({ type: "AuthError", error: "access token expired" });
  await turns();
  await tab.client.auth.signOut();
  answer.resolve(Response.json({ accessToken: "late", refreshToken: "late", userId: "ada" }));
  await turns();
  assert.equal(storage.items.size, 0);
  const again = await (clock.advance(1000), tab.open());
  assert.deepEqual(tokens(again), []);
});

Deno.test("a tab receives sign-ins and sign-outs of other tabs", async () => {
  const { clock, server, storage } = world();
  const page = pretendPage();
  try {
    const [here, there] = [new Tab({ clock, server, storage }), new Tab({ clock, server, storage })];
    const socket = await here.open();
    await there.client.auth.signIn({ email: "ada", password: "right" });
    await turns();
    assert.equal(tokens(socket).length, 1);
    socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
    await there.client.auth.signOut();
    await turns();
    assert.deepEqual(tokens(socket).slice(1), [null]);
    for (const tab of [here, there]) tab.client.close();
  } finally {
    page[Symbol.dispose]();
  }
});

Deno.test("every request uses its endpoint, and errors carry the contract's codes", async () => {
  const { clock, server, storage } = world();
  using tab = new Tab({ clock, server, storage });
  const { auth } = tab.client;
  await assert.rejects(auth.signIn({ email: "ada", password: "wrong" }), (error) => {
    assert(error instanceof AccountError);
    assert.deepEqual([error.code, error.status, error.message], [
      "invalid_credentials",
      401,
      "message of invalid_credentials",
    ]);
    return true;
  });
  server.answerNext = () => failure(429, "rate_limited", { "Retry-After": "7" });
  await assert.rejects(auth.requestMagicLink({ email: "a" }), { code: "rate_limited", retryAfterMs: 7000 });
  server.answerNext = () => new Response("<html>", { status: 502 });
  await assert.rejects(auth.requestMagicLink({ email: "a" }), { code: null, status: 502 });
  server.answerNext = () => Response.json({ verificationRequired: true });
  assert.deepEqual(await auth.signUp({ email: "a", password: "p" }), { verificationRequired: true });
  assert.deepEqual(await auth.signUp({ email: "a", password: "p", name: "A" }), {
    verificationRequired: false,
  });
  assert.deepEqual(await auth.signInWays(), {
    password: true,
    magicLink: true,
    signups: true,
    anonymous: false,
    oauth: ["github"],
  });
  server.requests.length = 0;
  await auth.requestMagicLink({ email: "a", redirectTo: "http://x" });
  await auth.signInWithMagic({ email: "a", code: "123456" });
  await auth.requestEmailVerification({ email: "a" });
  await auth.verifyEmail({ token: "t" });
  await auth.requestPasswordReset({ email: "a" });
  await auth.resetPassword({ token: "t", password: "p" });
  assert.deepEqual(server.requests, [
    ["magic/request", { email: "a", redirectTo: "http://x" }],
    ["magic/verify", { email: "a", code: "123456" }],
    ["verify-email/request", { email: "a" }],
    ["verify-email/confirm", { token: "t" }],
    ["reset/request", { email: "a" }],
    ["reset/confirm", { token: "t", password: "p" }],
  ]);
  assert.equal(
    auth.oauthAddress("git hub", "http://app/x?y"),
    "http://app.test/api/auth/oauth/git%20hub?redirect_to=http%3A%2F%2Fapp%2Fx%3Fy",
  );
});

Deno.test("parameters that links and providers add to the address are used and removed", async () => {
  const result = "svc_access_token=e30.e30.s&svc_refresh_token=r&svc_expires_in=900&svc_user_id=ada";
  const cases: [hash: string, result: unknown][] = [
    ["", { type: "none" }],
    ["#general", { type: "none" }],
    ["#svc_reset_token=abc", { type: "resetPassword", token: "abc" }],
    ["#svc_verify_token=abc", { type: "emailVerified" }],
    ["#svc_magic_token=abc&svc_state=STATE", { type: "signedIn" }],
    ["#svc_magic_token=abc", { type: "magicLink", token: "abc" }],
    ["#svc_magic_token=abc&svc_state=other", { type: "magicLink", token: "abc" }],
    ["#svc_sign_in_token=abc&svc_state=STATE", { type: "signedIn" }],
    ["#svc_sign_in_token=abc&svc_state=other", { type: "ignored" }],
    [`#${result}&svc_state=STATE`, { type: "signedIn" }],
    [`#${result}&svc_state=`, { type: "ignored" }],
    [`#${result}&svc_state=other`, { type: "ignored" }],
    [`#${result}`, { type: "ignored" }],
  ];
  for (const [pattern, result] of cases) {
    const { clock, server, storage } = world();
    using tab = new Tab({ clock, server, storage });
    await turns();
    const replaced: string[] = [];
    const location = { hash: "", pathname: "/app", search: "?q=1", href: "http://app.test/app" };
    const page = pretendPage({
      location,
      history: {
        state: 1,
        replaceState: (_state: unknown, _title: string, url: string) => replaced.push(url),
      },
    });
    try {
      const hash = pattern.replace("STATE", stateIn(tab.client.auth.oauthAddress("github", location.href)));
      Object.assign(location, { hash });
      assert.deepEqual(await tab.client.auth.completeRedirect(), result);
    } finally {
      page[Symbol.dispose]();
    }
    assert.deepEqual(replaced, pattern.startsWith("#svc_") ? ["/app?q=1"] : []);
    assert.equal(storage.items.size, (result as { type: string }).type === "signedIn" ? 1 : 0);
  }
});

Deno.test("OA11 a refusal in the address is an AccountError with its code, and other tabs are notified", async () => {
  const { clock, server, storage } = world();
  const location = {
    ...{ hash: "", pathname: "/app", search: "", href: "http://app.test/app" },
    assign(address: string) {
      this.hash = `#svc_error=access_denied&svc_error_description=No%20thanks&svc_state=${stateIn(address)}`;
    },
  };
  const page = pretendPage({
    location,
    history: { state: null, replaceState: () => {} },
  });
  try {
    using tab = new Tab({ clock, server, storage });
    using other = new Tab({ clock, server, storage });
    const reported: unknown[] = [];
    const elsewhere = Promise.withResolvers<AccountError>();
    tab.client.auth.signInWithOAuth("github");
    tab.client.auth.onRefusal((error) => reported.push(error));
    const stop = other.client.auth.onRefusal(() => reported.push("never"));
    stop();
    other.client.auth.onRefusal(elsewhere.resolve);
    const expected = { name: "AccountError", code: "access_denied", message: "No thanks", status: 0 };
    await assert.rejects(tab.client.auth.completeRedirect(), expected);
    assert.equal(reported.length, 1);
    assert.ok(reported[0] instanceof AccountError);
    const { name, code, message } = await elsewhere.promise;
    assert.deepEqual([name, code, message], ["AccountError", "access_denied", "No thanks"]);
    assert.equal(storage.items.size, 0);
  } finally {
    page[Symbol.dispose]();
  }
});

Deno.test("OA18 a refusal of the token that a provider's sign-in returned is reported like one in the address", async () => {
  const { clock, server, storage } = world();
  const location = { hash: "", pathname: "/app", search: "", href: "http://app.test/app" };
  const page = pretendPage({ location, history: { state: null, replaceState: () => {} } });
  try {
    using tab = new Tab({ clock, server, storage });
    using other = new Tab({ clock, server, storage });
    const elsewhere = Promise.withResolvers<AccountError>();
    other.client.auth.onRefusal(elsewhere.resolve);
    const state = stateIn(tab.client.auth.oauthAddress("github", location.href));
    location.hash = `#svc_sign_in_token=abc&svc_state=${state}`;
    const refused = { errorMessage: "No", errorData: { code: "mfa_required", data: { challenge: "x" } } };
    server.answerNext = () => Promise.resolve(Response.json(refused, { status: 403 }));
    const expected = { name: "AccountError", code: "mfa_required", message: "No", data: { challenge: "x" } };
    await assert.rejects(tab.client.auth.completeRedirect(), expected);
    assert.deepEqual(server.requests, [["oauth/verify", { token: "abc" }]]);
    assert.equal((await elsewhere.promise).code, "mfa_required");
    server.answerNext = () => Promise.reject(new TypeError("offline"));
    location.hash = `#svc_sign_in_token=abc&svc_state=${
      stateIn(tab.client.auth.oauthAddress("x", "http://x"))
    }`;
    await assert.rejects(tab.client.auth.completeRedirect(), { name: "TypeError", message: "offline" });
  } finally {
    page[Symbol.dispose]();
  }
});

Deno.test("OA11 a refusal without a sign-in of this window is not published to other tabs", async () => {
  const { clock, server, storage } = world();
  const hash = "#svc_error=access_denied&svc_error_description=Call%20this%20number";
  const location = {
    ...{ hash, pathname: "/app", search: "", href: "http://app.test/app" },
    assign(address: string) {
      this.hash = `#svc_error=late&svc_state=${stateIn(address)}`;
    },
  };
  const page = pretendPage({
    location,
    history: { state: null, replaceState: () => {} },
  });
  try {
    using tab = new Tab({ clock, server, storage });
    using other = new Tab({ clock, server, storage });
    const elsewhere: string[] = [];
    const heard = Promise.withResolvers<void>();
    other.client.auth.onRefusal(({ message }) => {
      elsewhere.push(message);
      heard.resolve();
    });
    const reported: string[] = [];
    tab.client.auth.onRefusal(({ message }) => reported.push(message));
    await assert.rejects(tab.client.auth.completeRedirect(), { code: "access_denied" });
    assert.deepEqual(reported, ["Call this number"]);
    // Messages arrive in order, so the next message shows that there was none before.
    tab.client.auth.signInWithOAuth("github");
    await assert.rejects(tab.client.auth.completeRedirect(), { code: "late" });
    await heard.promise;
    assert.deepEqual(elsewhere, [""]);
  } finally {
    page[Symbol.dispose]();
  }
});

Deno.test("an announcement of a tab with another client version is a change, not an error", async () => {
  const { clock, server, storage } = world();
  const page = pretendPage();
  try {
    using tab = new Tab({ clock, server, storage });
    const reported: unknown[] = [];
    tab.client.auth.onRefusal((error) => reported.push(error));
    const heard = Promise.withResolvers<void>();
    tab.client.auth.onRefusal(() => heard.resolve());
    const old = new BroadcastChannel("syncline-auth http://app.test/");
    old.postMessage("changed");
    old.postMessage(["last", "A refusal"]);
    await heard.promise;
    old.close();
    assert.deepEqual(reported.map((error) => (error as AccountError).code), ["last"]);
  } finally {
    page[Symbol.dispose]();
  }
});

Deno.test("signing in with a provider navigates the page there and back, or to the app's URL", async () => {
  const { clock, server, storage } = world();
  using tab = new Tab({ clock, server, storage });
  await turns();
  assert.throws(() => tab.client.auth.signInWithOAuth("github"), /outside a page/);
  const gone: string[] = [];
  const assign = (address: string) => gone.push(address);
  const page = pretendPage({ location: { href: "http://app.test/app?q=1#general", assign } });
  try {
    tab.client.auth.signInWithOAuth("github");
    tab.client.auth.signInWithOAuth("github", { redirectTo: "http://app.test/welcome" });
  } finally {
    page[Symbol.dispose]();
  }
  assert.deepEqual(gone.map((address) => new URL(address).searchParams.get("redirect_to")), [
    "http://app.test/app?q=1",
    "http://app.test/welcome",
  ]);
  assert(gone.every((address) => address.startsWith("http://app.test/api/auth/oauth/github?")));
});

Deno.test("OA17 an unfinished sign-in expires after an hour, and the oldest is removed if there are too many", async () => {
  const { clock, server, storage } = world();
  using tab = new Tab({ clock, server, storage });
  await turns();
  const { auth } = tab.client;
  const location = { hash: "", pathname: "/", search: "", href: "http://app.test/" };
  const localStorage = new MemoryStorage();
  localStorage.setItem("other", "1");
  localStorage.setItem("syncline-flow endless", "Infinity");
  const page = pretendPage({ localStorage, location, history: { state: null, replaceState: () => {} } });
  const finish = async (state: string) => {
    location.hash = `#svc_access_token=e30.e30.s&svc_refresh_token=r&svc_state=${state}`;
    return (await auth.completeRedirect()).type;
  };
  try {
    const begin = () => stateIn(auth.oauthAddress("github", location.href));
    assert.equal(await finish("endless"), "ignored");
    const first = begin();
    await clock.advance(clientLimits.flowMs - 1);
    const second = begin();
    assert.equal(await finish(first), "signedIn");
    await clock.advance(clientLimits.flowMs);
    assert.equal(await finish(second), "ignored");
    const states: string[] = [];
    for (let count = 0; count < clientLimits.flowsMax + 2; count++) {
      states.push(begin());
      await clock.advance(1);
    }
    assert.equal(localStorage.length, clientLimits.flowsMax + 1);
    assert.equal(await finish(states[1] ?? ""), "ignored");
    assert.equal(await finish(states[2] ?? ""), "signedIn");
    assert.equal(await finish(states[2] ?? ""), "ignored");
    assert.equal(localStorage.getItem("other"), "1");
  } finally {
    page[Symbol.dispose]();
  }
});

Deno.test("OA17 without storage no tokens are read from the address", async () => {
  const { clock, server, storage } = world();
  using tab = new Tab({ clock, server, storage });
  await turns();
  const location = { hash: "", pathname: "/", search: "", href: "http://app.test/" };
  const blocked = new Proxy(new MemoryStorage(), {
    get() {
      throw new DOMException("blocked", "SecurityError");
    },
  });
  const page = pretendPage({
    location,
    localStorage: blocked,
    history: { state: null, replaceState: () => {} },
  });
  try {
    const address = new URL(tab.client.auth.oauthAddress("github", location.href));
    assert.equal(address.searchParams.get("app_state"), null);
    location.hash = "#svc_access_token=e30.e30.s&svc_refresh_token=r";
    assert.deepEqual(await tab.client.auth.completeRedirect(), { type: "ignored" });
    location.hash = "#svc_access_token=e30.e30.s&svc_refresh_token=r&svc_state=null";
    assert.deepEqual(await tab.client.auth.completeRedirect(), { type: "ignored" });
  } finally {
    page[Symbol.dispose]();
  }
});

/** The state of the sign-in that a URL starts. */
function stateIn(address: string): string {
  return new URL(address).searchParams.get("app_state") ?? "";
}

/** Simulates a page with more tabs. */
function pretendPage(more: Record<string, unknown> = {}): Disposable {
  const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
  const scope = globalThis as unknown as Record<string, unknown>;
  const added = { document: page, localStorage: new MemoryStorage(), ...more };
  const before = Object.keys(added).map((key) => [key, Object.getOwnPropertyDescriptor(scope, key)] as const);
  for (const [key, value] of Object.entries(added)) {
    Object.defineProperty(scope, key, { value, configurable: true, writable: true });
  }
  return {
    [Symbol.dispose]() {
      for (const [key, descriptor] of before) {
        if (descriptor === undefined) delete scope[key];
        else Object.defineProperty(scope, key, descriptor);
      }
    },
  };
}
