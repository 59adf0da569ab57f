/** Signs of a page that is back: the client tries at once. */
import assert from "node:assert/strict";
import { makeTestClient } from "./support/test_client.ts";

/** Lets the client believe that it runs on a page. */
function pretendPage(): { page: EventTarget & { visibilityState: string } } & Disposable {
  const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
  const scope = globalThis as { document?: unknown };
  scope.document = page;
  return { page, [Symbol.dispose]: () => delete scope.document };
}

Deno.test("online, pageshow and a page that becomes visible end the wait before the next attempt", () => {
  using pretended = pretendPage();
  const { page } = pretended;
  const signs: [EventTarget, string][] = [[globalThis, "online"], [globalThis, "pageshow"], [
    page,
    "visibilitychange",
  ]];
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

Deno.test("a closed client listens to nothing", () => {
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
  assert.deepEqual(listened, ["addEventListener visibilitychange", "removeEventListener visibilitychange"]);
});
