/** Signs of a page that is back: the client tries at once. */
import assert from "node:assert/strict";
import { SynclineClient } from "../../mod/client/mod.ts";
import { AccountServer } from "./support/account_server.ts";
import { FakeClock, settle } from "./support/fake_clock.ts";
import { FakeSockets } from "./support/fake_socket.ts";
import { makeTestClient, transition, updated } from "./support/test_client.ts";

/** Lets the client believe that it runs on a page. */
function pretendPage(): { page: EventTarget & { visibilityState: string } } & Disposable {
  const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
  const scope = globalThis as { document?: unknown };
  scope.document = page;
  return { page, [Symbol.dispose]: () => delete scope.document };
}

Deno.test("online, pageshow, resume and a page that becomes visible end the wait before the next attempt", () => {
  using pretended = pretendPage();
  const { page } = pretended;
  const signs: [EventTarget, string][] = [
    [globalThis, "online"],
    [globalThis, "pageshow"],
    [page, "visibilitychange"],
    [page, "resume"],
  ];
  for (const [target, type] of signs) {
    using test = makeTestClient();
    test.sockets.last.closeWith(1006);
    assert.equal(test.client.connectionState().phase, "waiting");
    page.visibilityState = "hidden";
    page.dispatchEvent(new Event("visibilitychange"));
    assert.equal(test.client.connectionState().phase, "waiting", "a page that goes away is no sign");
    page.visibilityState = "visible";
    target.dispatchEvent(new Event(type));
    assert.equal(test.client.connectionState().phase, "connecting", type);
  }
});

Deno.test("a closed client has no listeners", () => {
  using pretended = pretendPage();
  const listened: string[] = [];
  const count = (kind: string) => {
    const original = pretended.page[kind as "addEventListener"].bind(pretended.page);
    pretended.page[kind as "addEventListener"] = (...args: Parameters<typeof original>) => {
      listened.push(`${kind} ${args[0]}`);
      original(...args);
    };
  };
  count("addEventListener");
  count("removeEventListener");
  makeTestClient().client.close();
  assert.deepEqual(
    listened.toSorted(),
    ["addEventListener", "removeEventListener"].flatMap((kind) => [
      `${kind} resume`,
      `${kind} visibilitychange`,
    ]),
  );
});

Deno.test("a machine that slept with the page in sight is noticed by its clock, and a dead socket given up", async () => {
  using pretended = pretendPage();
  using test = makeTestClient();
  const { clock, client, sockets } = test;
  await test.open();
  await clock.advance(14_000);
  assert.equal(client.connectionState().phase, "open", "time that passes is no sleep");
  clock.sleep(3_600_000);
  await clock.advance(5_000);
  assert.deepEqual([client.connectionState().phase, sockets.all.length], ["connecting", 2]);
  assert(pretended.page instanceof EventTarget);
});

Deno.test("an attempt from before a sleep is abandoned after it", () => {
  using test = makeTestClient();
  const { clock, client, sockets } = test;
  clock.sleep(14_999);
  client.reconnectNow();
  assert.equal(sockets.all.length, 1, "it may still open");
  clock.sleep(1);
  client.reconnectNow();
  assert.deepEqual([client.connectionState().phase, sockets.all.length], ["connecting", 2]);
});

Deno.test("CL15 a paused client has no socket and does not poll until it is woken, calls or subscribes", async () => {
  const requests: unknown[] = [];
  using test = makeTestClient({
    fetch: (input) => {
      requests.push(input);
      return Promise.reject(new Error("no network"));
    },
  });
  const { client, clock, sockets } = test;
  const seen: unknown[] = [];
  client.subscribe("q", {}, (value) => seen.push(value));
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, "old")]));
  client.pause();
  assert.deepEqual([client.connectionState().phase, socket.dropped], ["idle", true]);
  await clock.advance(3_600_000);
  assert.deepEqual([sockets.all.length, requests.length], [1, 0]);
  assert.equal(client.watchQuery("q").localResult(), "old");
  client.reconnectNow();
  (await test.open()).receive(transition([[0, 0, 0], [1, 0, 2]], [updated(0, "new")]));
  assert.deepEqual(seen, ["old", "new"]);
  for (
    const resume of [() => client.subscribe("r", {}, () => {}), () => client.action("a").catch(() => {})]
  ) {
    client.pause();
    void resume();
    assert.equal(client.connectionState().phase, "connecting");
  }
  client.close();
  client.pause();
  client.reconnectNow();
  assert.equal(client.connectionState().phase, "stopped");
});

/** Responses of the account server are read in ticks of the event loop. */
async function ticks(): Promise<void> {
  for (let tick = 0; tick < 8; tick++) {
    await settle();
    await new Promise((resolve) => setTimeout(resolve));
  }
}

Deno.test("CL15 a token that `client.auth` refreshes does not end a pause, but a sign-in does", async () => {
  const clock = new FakeClock();
  const server = new AccountServer(clock);
  const sockets = new FakeSockets();
  const client = new SynclineClient("http://app.test", {
    webSocket: sockets.factory,
    clock,
    polling: false,
    accounts: { fetch: server.fetch },
  });
  const phase = () => client.connectionState().phase;
  await client.auth.signIn({ email: "a", password: "p" });
  await ticks();
  sockets.last.open();
  await ticks();
  client.pause();
  await clock.advance(900_000);
  await ticks();
  assert.deepEqual([server.refreshes.length, phase()], [1, "idle"]);
  client.reconnectNow();
  assert.equal(phase(), "connecting");
  client.pause();
  await client.auth.signIn({ email: "b", password: "p" });
  await ticks();
  assert.equal(phase(), "connecting");
  client.close();
});
