import assert from "node:assert/strict";
import { RequestsUnderWay } from "../../mod/server/http/requests_under_way.ts";

const never = new AbortController().signal;

Deno.test("where nothing is being answered nobody waits", async () => {
  const requests = new RequestsUnderWay();
  assert.equal(await requests.none(60_000, never), true);
  requests.begin(Promise.resolve());
  await Promise.resolve();
  assert.equal(await requests.none(60_000, never), true);
});

Deno.test("the last answer ends the waiting, also one that fails or that was begun meanwhile", async () => {
  const requests = new RequestsUnderWay();
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  requests.begin(first.promise);
  let over = false;
  const waiting = Promise.all([requests.none(60_000, never), requests.none(60_000, never)]).then((none) => {
    over = true;
    return none;
  });
  requests.begin(second.promise);
  first.reject(new Error("the client is gone"));
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(over, false);
  second.resolve();
  assert.deepEqual(await waiting, [true, true]);
});

Deno.test("what is never answered is waited for no longer than that, and not when the server stops", async () => {
  const requests = new RequestsUnderWay();
  requests.begin(new Promise(() => {}));
  assert.equal(await requests.none(1, never), false);
  const stopping = new AbortController();
  const waiting = requests.none(60_000, stopping.signal);
  stopping.abort();
  assert.equal(await waiting, false);
  assert.equal(await requests.none(60_000, stopping.signal), false);
});
