/** Requests of the dashboard while the scroll position changes. */
import assert from "node:assert/strict";
import { LatestRequest } from "../../dashboard/app/views/data/use_document_pages.ts";

interface Asked {
  readonly wanted: string;
  readonly answer: (used: boolean) => void;
  readonly fail: () => void;
}

/** Requests that the test answers by hand. */
function byHand(): { requests: LatestRequest<string>; asked: Asked[]; next: () => Promise<Asked> } {
  const asked: Asked[] = [];
  let requested = Promise.withResolvers<void>();
  const requests = new LatestRequest<string>((wanted) => {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    asked.push({ wanted, answer: resolve, fail: () => reject(new Error("away")) });
    requested.resolve();
    requested = Promise.withResolvers();
    return promise;
  });
  return {
    requests,
    asked,
    async next() {
      const { length } = asked;
      await requested.promise;
      const [request] = asked.slice(length);
      assert.ok(request);
      return request;
    },
  };
}

const settled = () => new Promise((resolve) => setTimeout(resolve));

Deno.test("DA9 one request runs at a time, and only the latest of the queued ones is sent", async () => {
  const { requests, asked, next } = byHand();
  requests.ask("a");
  for (const wanted of ["b", "c", "d"]) requests.ask(wanted);
  assert.deepEqual(asked.map(({ wanted }) => wanted), ["a"]);
  const second = next();
  asked[0]?.answer(true);
  assert.equal((await second).wanted, "d");
});

Deno.test("DA9 after a stale response the next request waits until the position is stable", async () => {
  const { requests, asked, next } = byHand();
  requests.ask("a");
  requests.ask("b");
  const second = next();
  asked[0]?.answer(false);
  await settled();
  // Newer requests replace it and restart the delay.
  requests.ask("c");
  requests.ask("d");
  assert.equal(asked.length, 1);
  const { wanted, answer } = await second;
  assert.equal(wanted, "d");
  answer(true);
  await settled();
  requests.ask("e");
  assert.deepEqual(asked.map(({ wanted }) => wanted), ["a", "d", "e"]);
});

Deno.test("DA9 a dropped request is not sent, and a failed one does not block the next", async () => {
  const { requests, asked, next } = byHand();
  requests.ask("a");
  requests.ask("b");
  requests.drop();
  asked[0]?.answer(true);
  await settled();
  requests.ask("c");
  assert.deepEqual(asked.map(({ wanted }) => wanted), ["a", "c"]);
  requests.ask("d");
  const after = next();
  asked[1]?.fail();
  assert.equal((await after).wanted, "d");
});
