/** The signed-in user, with accounts of the server or with the app's own tokens. */
import assert from "node:assert/strict";
import { type AuthState, SynclineClient, type TokenStorage } from "../../mod/client/mod.ts";
import { FakeClock, settle } from "./support/fake_clock.ts";
import { FakeSockets } from "./support/fake_socket.ts";
import { transition } from "./support/test_client.ts";
import { nextTick } from "../support/waiting.ts";

/** A client whose accounts have tokens of ada's, and its reports of the signed-in user. */
function makeClient() {
  const sockets = new FakeSockets();
  const clock = new FakeClock();
  const asked: string[] = [];
  let tokens = tokensOf("ada");
  const storage: TokenStorage = {
    getItem: (key) => (asked.push(key), tokens),
    setItem: () => {},
    removeItem: () => {},
  };
  const client = new SynclineClient("http://server.test", {
    webSocket: sockets.factory,
    clock,
    random: () => 0.5,
    polling: false,
    accounts: { storage },
  });
  const reported: string[] = [];
  client.onAuthState((state) => reported.push(text(state)));
  const open = async () => {
    sockets.last.open();
    await settle();
    return sockets.last;
  };
  const sentTokens = () =>
    sockets.last.sent.flatMap((message) => message.type === "Authenticate" ? [message.token] : []);
  const store = (userId: string) => void (tokens = tokensOf(userId));
  return { client, clock, store, asked, reported, open, sentTokens, [Symbol.dispose]: () => client.close() };
}

function tokensOf(userId: string): string {
  return JSON.stringify({ accessToken: `${userId}'s`, refreshToken: `r ${userId}`, userId });
}

function text(state: AuthState): string {
  return state.status === "signedIn" ? `signedIn ${state.userId}` : state.status;
}

Deno.test("reading the signed-in user uses the stored tokens", async () => {
  using test = makeClient();
  const { client, reported } = test;
  assert.deepEqual(client.authState(), { status: "loading" });
  const socket = await test.open();
  assert.equal(client.authState().status, "loading", "the server has not accepted it yet");
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  assert.deepEqual(reported, ["loading", "signedIn ada"]);
  assert.equal(client.authState(), client.authState());
});

Deno.test("tokens of the app take precedence, and the account client does not interfere", async () => {
  using test = makeClient();
  const { client, asked, reported } = test;
  client.setAuth(() => Promise.resolve("mine"));
  assert.equal(typeof client.auth.signIn, "function");
  assert.deepEqual(client.authState(), { status: "loading" });
  const socket = await test.open();
  assert.deepEqual([test.sentTokens(), asked], [["mine"], []]);
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  assert.deepEqual(client.authState(), { status: "signedIn", userId: null });
  client.setAuth(() => Promise.resolve("mine too"));
  await settle();
  socket.receive(transition([[0, 1, 1], [0, 2, 1]]));
  assert.deepEqual(reported, ["loading", "signedIn null"], "another getter alone is no news");
  client.clearAuth();
  assert.equal(client.authState().status, "signedOut");
  assert.deepEqual([test.sentTokens(), asked], [["mine", "mine too", null], []]);
});

Deno.test("an effect that runs twice signs in once, and never reports a signed-out state", async () => {
  using test = makeClient();
  const { client } = test;
  const effect = () => {
    client.setAuth(() => Promise.resolve("mine"));
    return () => client.clearAuth();
  };
  effect()();
  const end = effect();
  assert.equal(client.authState().status, "loading");
  const socket = await test.open();
  assert.deepEqual(test.sentTokens(), ["mine"]);
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  assert.equal(text(client.authState()), "signedIn null");
  end();
  assert.deepEqual(client.authState(), { status: "signedOut" });
});

Deno.test("the app may set tokens later than the first read, and without any no user is signed in", async () => {
  using test = makeClient();
  const { client, reported } = test;
  client.authState();
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  client.setAuth(() => Promise.resolve(null));
  assert.equal(client.authState().status, "loading", "ada is not whom the app means");
  await settle();
  assert.deepEqual(reported, ["loading", "signedIn ada", "loading", "signedOut"]);
  assert.deepEqual(test.sentTokens(), ["ada's", null]);
});

Deno.test("a listener may throw, end another one, and ask a client that was closed", async () => {
  using test = makeClient();
  const { client, reported } = test;
  const ended: string[] = [];
  const end = client.onAuthState(() => ended.push("reported"));
  const unhandled: unknown[] = [];
  const onUnhandled = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    unhandled.push(String(event.reason));
  };
  globalThis.addEventListener("unhandledrejection", onUnhandled);
  client.onAuthState(() => {
    throw new Error("mine");
  });
  end();
  client.setAuth(() => Promise.resolve(null));
  await settle();
  client.close();
  assert.equal(client.authState().status, "signedOut");
  await nextTick();
  globalThis.removeEventListener("unhandledrejection", onUnhandled);
  assert.deepEqual([reported, ended, unhandled], [["loading", "signedOut"], [], [
    "Error: mine",
    "Error: mine",
  ]]);
});

Deno.test("a refresh signs in the user of the stored tokens", async () => {
  using test = makeClient();
  const { client, clock, reported } = test;
  client.authState();
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  // Another tab signed out, and signed in as another user.
  test.store("bob");
  socket.receive({ type: "AuthError", error: "session has ended" });
  await clock.advance(1_000);
  const next = await test.open();
  assert.deepEqual(test.sentTokens(), ["bob's"]);
  assert.equal(text(client.authState()), "signedIn ada");
  next.receive(transition([[0, 0, 0], [0, 1, 2]]));
  assert.deepEqual(reported, ["loading", "signedIn ada", "signedIn bob"]);
});

Deno.test("a listener may sign out or set other tokens immediately: all listeners get the final state", async () => {
  using test = makeClient();
  const { client, reported } = test;
  const changes: string[] = [];
  const later: string[] = [];
  let turn = 0;
  client.onAuthState(({ status }) => {
    if (status !== "signedIn") return;
    if (++turn === 1) client.setAuth(() => Promise.resolve("b"), (is) => changes.push(`b ${is}`));
    else client.clearAuth();
  });
  client.onAuthState((state) => later.push(text(state)));
  client.setAuth(() => Promise.resolve("a"), (is) => changes.push(`a ${is}`));
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  assert.deepEqual(changes, ["a true"], "the server has not accepted b yet");
  await settle();
  assert.deepEqual(test.sentTokens(), ["a", "b"]);
  client.clearAuth();
  client.setAuth(() => Promise.resolve("c"), (is) => changes.push(`c ${is}`));
  await settle();
  socket.receive(transition([[0, 1, 1], [0, 4, 1]]));
  assert.deepEqual(changes, ["a true", "c true", "c false"]);
  assert.deepEqual([client.authState().status, reported.at(-1), later.at(-1)], Array(3).fill("signedOut"));
});

Deno.test("a getter's callback may sign out immediately", async () => {
  using test = makeClient();
  const { client, reported } = test;
  client.setAuth(() => Promise.resolve("a"), (is) => is && client.clearAuth());
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  assert.deepEqual([client.authState().status, reported.at(-1)], ["signedOut", "signedOut"]);
});
