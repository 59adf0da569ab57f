import assert from "node:assert/strict";
import { InFlightRequests } from "../../mod/server/http/requests.ts";

const never = new AbortController().signal;

Deno.test("where nothing is being answered nobody waits", async () => {
  const requests = new InFlightRequests();
  assert.equal(await requests.waitUntilIdle(60_000, never), true);
  requests.add(Promise.resolve());
  await Promise.resolve();
  assert.equal(await requests.waitUntilIdle(60_000, never), true);
});

Deno.test("the last answer ends the waiting, also one that fails or that was begun meanwhile", async () => {
  const requests = new InFlightRequests();
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  requests.add(first.promise);
  let over = false;
  const waiting = Promise.all([requests.waitUntilIdle(60_000, never), requests.waitUntilIdle(60_000, never)])
    .then((none) => {
      over = true;
      return none;
    });
  requests.add(second.promise);
  first.reject(new Error("the client is gone"));
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(over, false);
  second.resolve();
  assert.deepEqual(await waiting, [true, true]);
});

Deno.test("what is never answered is waited for no longer than that, and not when the server stops", async () => {
  const requests = new InFlightRequests();
  requests.add(new Promise(() => {}));
  assert.equal(await requests.waitUntilIdle(1, never), false);
  const stopping = new AbortController();
  const waiting = requests.waitUntilIdle(60_000, stopping.signal);
  stopping.abort();
  assert.equal(await waiting, false);
  assert.equal(await requests.waitUntilIdle(60_000, stopping.signal), false);
});
