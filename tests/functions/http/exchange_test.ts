/** Main's side of a request with a fake runner: back-pressure, disconnects, and invalid or lost runners. */
import assert from "node:assert/strict";
import { anonymous } from "../../../mod/functions/identity.ts";
import { failed, type Outcome } from "../../../mod/functions/outcome.ts";
import { RouteExchange } from "../../../mod/functions/host/runners/route_exchange.ts";
import { RouteTable } from "../../../mod/functions/host/runners/route_table.ts";
import { RouteRequests } from "../../../mod/functions/host/runners/route_requests.ts";
import type { ResponseHead } from "../../../mod/functions/wire/messages.ts";
import { routeLimits } from "../../../mod/functions/limits.ts";
import { FakeIsolate } from "../host/support/fake_isolate.ts";

const CALL = 3;
const ended: Outcome = { ok: true, value: "null", logLines: [] };

function runner(): FakeIsolate {
  return new FakeIsolate("runner", { type: "Ready", functions: [], ts: 0, lastGroup: null });
}

function begin(request: Request): { exchange: RouteExchange; isolate: FakeIsolate } {
  const exchange = new RouteExchange({ request, route: "GET /", identity: anonymous });
  const isolate = runner();
  exchange.begin(isolate, { call: CALL, order: 1 });
  return { exchange, isolate };
}

function head(rest: Partial<ResponseHead> = {}): ResponseHead {
  return {
    type: "ResponseHead",
    call: CALL,
    status: 200,
    statusText: "",
    headers: [],
    hasBody: true,
    ...rest,
  };
}

function bytes(exchange: RouteExchange, text: string): void {
  exchange.receive({ type: "Bytes", call: CALL }, new TextEncoder().encode(text));
}

async function answerOf(exchange: RouteExchange): Promise<Response> {
  const answer = await exchange.answer;
  assert(answer.ok, "there is no response");
  return answer.response;
}

function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

Deno.test("a response is available once its head arrives, and its body follows", async () => {
  const { exchange } = begin(new Request("http://h/"));
  exchange.receive(
    head({ status: 201, headers: [["x-a", "1"], ["set-cookie", "a"], ["set-cookie", "b"]] }),
    undefined,
  );
  const response = await answerOf(exchange);
  assert.equal(response.status, 201);
  assert.deepEqual(response.headers.getSetCookie(), ["a", "b"]);
  const text = response.text();
  bytes(exchange, "one ");
  bytes(exchange, "two");
  exchange.end(ended);
  assert.equal(await text, "one two");
});

Deno.test("connection headers are not forwarded", () => {
  const { isolate } = begin(
    new Request("http://h/", {
      headers: {
        "connection": "keep-alive, x-hop",
        "x-hop": "1",
        "te": "trailers",
        "upgrade": "h2c",
        "x-own": "2",
      },
    }),
  );
  assert.deepEqual(isolate.last("RunRequest").headers, [["x-own", "2"]]);
});

Deno.test("the request's body is sent as fast as the runner reads it", async () => {
  const body = new Uint8Array(routeLimits.windowBytes + 1_000);
  const { isolate, exchange } = begin(new Request("http://h/", { method: "POST", body }));
  const sentBytes = () => isolate.sentBytes.reduce((sum, part) => sum + part.bytes.length, 0);
  await turn();
  await turn();
  assert.equal(sentBytes(), routeLimits.windowBytes);
  exchange.receive({ type: "BodyCredit", call: CALL, bytes: 1_000 }, undefined);
  await turn();
  await turn();
  assert.equal(sentBytes(), body.length);
  assert.deepEqual(isolate.last("BodyEnd"), { type: "BodyEnd", call: CALL, error: null });
  exchange.end(ended);
});

Deno.test("a disconnecting client cancels the request, before the response and during it", async () => {
  const gone = new AbortController();
  const first = begin(new Request("http://h/", { signal: gone.signal }));
  const second = begin(new Request("http://h/"));
  gone.abort();
  assert.equal(first.isolate.last("CancelRequest").call, CALL);
  second.exchange.receive(head(), undefined);
  await (await answerOf(second.exchange)).body?.cancel();
  assert.equal(second.isolate.last("CancelRequest").call, CALL);
  // Data that the runner had sent before does not count as an error.
  bytes(second.exchange, "late");
  for (const { exchange } of [first, second]) exchange.end(ended);
});

Deno.test("HEAD gets the head of GET's response, and the body is not requested", async () => {
  const { exchange, isolate } = begin(new Request("http://h/", { method: "HEAD" }));
  exchange.receive(head({ headers: [["x-a", "1"]] }), undefined);
  const response = await answerOf(exchange);
  assert.equal(response.headers.get("x-a"), "1");
  assert.equal(response.body, null);
  assert.equal(isolate.last("CancelRequest").call, CALL);
  exchange.end(ended);
});

Deno.test("an error before the response is the answer, one after it breaks the body off", async () => {
  const { exchange: before } = begin(new Request("http://h/"));
  before.end(failed("internal", "thrown"));
  assert.deepEqual(await before.answer, {
    ok: false,
    error: { kind: "internal", message: "thrown", data: null },
  });
  const { exchange: after } = begin(new Request("http://h/"));
  after.receive(head(), undefined);
  const text = (await answerOf(after)).text();
  bytes(after, "half");
  after.end(failed("internal", "the runner died"));
  await assert.rejects(text, /broke off: the runner died/);
});

Deno.test("a runner that ends without a response is an error", async () => {
  const { exchange } = begin(new Request("http://h/"));
  exchange.end(ended);
  const answer = await exchange.answer;
  assert(!answer.ok && /without a response/.test(answer.error.message));
});

Deno.test("a response of an unknown runner is refused, and the runner is ended", async () => {
  const { exchange: early } = begin(new Request("http://h/"));
  assert.throws(() => bytes(early, "x"), /without a response/);
  const { exchange } = begin(new Request("http://h/"));
  exchange.receive(head(), undefined);
  const response = await answerOf(exchange);
  assert.throws(() => exchange.receive(head(), undefined), /twice/);
  const flood = "x".repeat(routeLimits.chunkBytesMax);
  assert.throws(() => {
    for (let i = 0; i < 100; i++) bytes(exchange, flood);
  }, RangeError);
  await response.body?.cancel();
  for (const each of [early, exchange]) each.end(ended);
});

Deno.test("requests over the limit wait in order, and those over the queue's limit are refused", async () => {
  const running: { resolve: (outcome: Outcome) => void; url: string }[] = [];
  const requests = new RouteRequests({
    routes: () => new RouteTable([]),
    run: (call) => new Promise((resolve) => void running.push({ resolve, url: call.udfPath })),
  });
  const ask = (i: number) =>
    requests.respond({
      request: new Request(`http://h/${i}`),
      route: "GET /*",
      identity: anonymous,
      // One caller may use at most half of the slots.
      caller: { queueKey: `${i % 4}`, blame: `${i % 4}` },
    });
  const all = routeLimits.requestsMax + routeLimits.requestsWaitingMax;
  const answers = Array.from({ length: all }, (_, i) => ask(i));
  const refused = await ask(all);
  assert(!refused.ok && refused.error.retryable === true);
  assert.equal(running.length, routeLimits.requestsMax);
  for (let i = 0; i < all; i++) {
    running[i]?.resolve(failed("internal", "done"));
    await turn();
    assert.equal(running.length, Math.min(all, routeLimits.requestsMax + i + 1));
  }
  assert.deepEqual(running.map(({ url }) => url), Array.from({ length: all }, (_, i) => `GET /${i}`));
  assert((await Promise.all(answers)).every(({ ok }) => !ok));
});

Deno.test("headers over the limit are refused and use no slot", async () => {
  const requests = new RouteRequests({
    routes: () => new RouteTable([]),
    run: () => Promise.resolve(ended),
  });
  const headers = { "x-long": "x".repeat(routeLimits.headerCharsMax) };
  for (let i = 0; i <= routeLimits.requestsMax; i++) {
    const answer = await requests.respond({
      request: new Request("http://h/", { headers }),
      route: "GET /",
      identity: anonymous,
    });
    assert(!answer.ok && answer.error.kind === "args");
  }
});
