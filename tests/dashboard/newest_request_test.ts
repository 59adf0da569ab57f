/** How the dashboard asks for what is looked at while that moves on. */
import assert from "node:assert/strict";
import { NewestRequest } from "../../dashboard/app/views/data/newest_request.ts";

interface Asked {
  readonly wanted: string;
  readonly answer: (used: boolean) => void;
  readonly fail: () => void;
}

/** Requests, each of which is answered by hand. */
function byHand(): { requests: NewestRequest<string>; asked: Asked[]; next: () => Promise<Asked> } {
  const asked: Asked[] = [];
  let told = Promise.withResolvers<void>();
  const requests = new NewestRequest<string>((wanted) => {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    asked.push({ wanted, answer: resolve, fail: () => reject(new Error("away")) });
    told.resolve();
    told = Promise.withResolvers();
    return promise;
  });
  return {
    requests,
    asked,
    async next() {
      const { length } = asked;
      await told.promise;
      const [request] = asked.slice(length);
      assert.ok(request);
      return request;
    },
  };
}

const settled = () => new Promise((resolve) => setTimeout(resolve));

Deno.test("DA9 one request is under way, and of what is wanted meanwhile only the newest is asked for", async () => {
  const { requests, asked, next } = byHand();
  requests.ask("a");
  for (const wanted of ["b", "c", "d"]) requests.ask(wanted);
  assert.deepEqual(asked.map(({ wanted }) => wanted), ["a"]);
  const second = next();
  asked[0]?.answer(true);
  assert.equal((await second).wanted, "d");
});

Deno.test("DA9 what came too late has the next one wait until somebody stays, and then asks at once again", async () => {
  const { requests, asked, next } = byHand();
  requests.ask("a");
  requests.ask("b");
  const second = next();
  asked[0]?.answer(false);
  await settled();
  // Moving on puts it off, and takes its place.
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

Deno.test("DA9 what is wanted no more is not asked for, and a failed request holds nothing up", async () => {
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
