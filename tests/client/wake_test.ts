/** Signs of a page that is back: the client tries at once. */
import assert from "node:assert/strict";
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
