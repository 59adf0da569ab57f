/** `ctx.rateLimit`: token buckets against a model in whole milliseconds, stored rows, and results for callers. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { FunctionError } from "syncline/client";
import type { MutationCtx, RateLimit } from "syncline/server";
import { createTestServer } from "syncline/test";
import { z } from "zod";
import { openWriterDatabase, type WriterDatabase } from "../../../mod/engine/mod.ts";
import {
  type AnyDataModel,
  untypedAction,
  untypedMutation,
  untypedQuery,
  UserError,
} from "../../../mod/functions/api/mod.ts";
import { anonymous } from "../../../mod/functions/identity.ts";
import {
  assembleApp,
  type LoadedApp,
  rateLimitModule,
  runMutation,
  runQuery,
  type UsedRateLimit,
} from "../../../mod/functions/isolate/mod.ts";
import { appRateLimits } from "../../../mod/functions/limits.ts";
import type { Outcome } from "../../../mod/functions/outcome.ts";

const { shownLimitsMax } = appRateLimits;

type Handler = (ctx: MutationCtx<AnyDataModel>) => Promise<unknown>;

/** Runs handlers as mutations on a database in memory, at a chosen time. */
class Mutations implements Disposable {
  readonly #writer: WriterDatabase;
  readonly #app: LoadedApp;
  #handler: Handler = () => Promise.resolve();
  now = 1_700_000_000_000;

  constructor() {
    const run = untypedMutation({ handler: (ctx) => this.#handler(ctx) });
    const inner = untypedMutation({
      handler: async (ctx) => {
        await ctx.rateLimit("inner", { rate: 1, per: "hour" });
        throw new Error("inner failed");
      },
    });
    this.#app = assembleApp([{ name: "app.ts", modulePath: "app", exports: { run, inner } }], {
      systemModules: [rateLimitModule],
      named: [],
    });
    this.#writer = openWriterDatabase(":memory:");
    this.#writer.applySchema(this.#app.schema);
  }

  /** Returns the ts of the commit and `null`, or the failure. */
  async run(handler: Handler): Promise<{ readonly ts: number; readonly failure: Failure | null }> {
    this.#handler = handler;
    this.#writer.openGroup();
    const mutation = { udfPath: "app:run", args: {}, identity: anonymous, origin: "client" } as const;
    const { ending, ts } = await runMutation(this.#app, this.#writer, { mutation, at: this.now });
    this.#writer.commitGroup("");
    return { ts, failure: ending.ok ? null : ending.error };
  }

  /** Number of stored buckets. */
  get stored(): number {
    this.#writer.openGroup();
    const count = this.#writer.beginMutation({ at: this.now }).count("_rate_limits", "by_id", { eq: [] });
    this.#writer.rollbackMutation();
    this.#writer.commitGroup("");
    return count;
  }

  /** The limits as administrators see them. */
  async list(): Promise<UsedRateLimit[]> {
    this.#writer.openGroup();
    const reads = this.#writer.beginMutation({ at: this.now });
    const call = {
      udfPath: "_system/rateLimits:list",
      args: {},
      identity: anonymous,
      origin: "system",
    } as const;
    const { ending } = await runQuery(this.#app, call, { reads, at: this.now });
    this.#writer.rollbackMutation();
    this.#writer.commitGroup("");
    assert.ok(ending.ok, JSON.stringify(ending));
    return JSON.parse(ending.text);
  }

  /** Removes the field that earlier versions did not store. */
  forgetBursts(): void {
    this.#writer.openGroup();
    const writes = this.#writer.beginMutation({ at: this.now });
    const rows = [...writes.scan("_rate_limits", "by_id", { eq: [] }, { order: "asc" })];
    for (const { doc } of rows) {
      const { _id, _creationTime, burst: _, ...bucket } = doc;
      writes.replace(_id, bucket);
    }
    this.#writer.releaseMutation();
    this.#writer.commitGroup("");
  }

  [Symbol.dispose](): void {
    this.#writer[Symbol.dispose]();
  }
}

type Failure = Extract<Outcome, { ok: false }>["error"];

/** The time to wait of a refused call; `null` if it was allowed. */
function waitOf({ failure }: { readonly failure: Failure | null }): number | null {
  if (failure === null) return null;
  assert.equal(failure.kind, "user", failure.message);
  assert.equal(failure.data?.code, "rate_limited");
  return (failure.data?.data as { retryAfter: number }).retryAfter;
}

Deno.test("RA1: random calls are allowed and refused as by a model in whole milliseconds", async () => {
  const call = fc.record({
    after: fc.oneof(fc.constant(0), fc.nat(40), fc.nat(2_000)),
    key: fc.constantFrom("a", "b", "c"),
    end: fc.constantFrom("commit" as const, "commit" as const, "throw" as const),
  });
  const limits = fc.record({
    everyMs: fc.integer({ min: 1, max: 50 }),
    burst: fc.integer({ min: 1, max: 5 }),
  });
  await fc.assert(
    fc.asyncProperty(limits, fc.array(call, { maxLength: 60 }), async ({ everyMs, burst }, calls) => {
      using mutations = new Mutations();
      /** Milliseconds until a bucket is full, as of a time. */
      const debts = new Map<string, { debt: number; at: number }>();
      for (const { after, key, end } of calls) {
        mutations.now += after;
        const { now } = mutations;
        const known = debts.get(key) ?? { debt: 0, at: now };
        const debt = Math.max(0, known.debt - (now - known.at)) + everyMs;
        const excess = debt - burst * everyMs;
        const outcome = await mutations.run(async (ctx) => {
          await ctx.rateLimit("calls", { key, rate: 1, per: everyMs, burst });
          if (end === "throw") throw new UserError("rate_limited", "thrown by the app", { retryAfter: -1 });
        });
        const expected = excess > 0 ? excess : end === "throw" ? -1 : null;
        assert.equal(waitOf(outcome), expected);
        if (expected === null) debts.set(key, { debt, at: now });
      }
    }),
    { numRuns: 25 },
  );
});

const perMinute = (rate: number, more: Partial<RateLimit> = {}): RateLimit => ({
  rate,
  per: "minute",
  ...more,
});

Deno.test("RA2, RA3: a refused call writes nothing and succeeds after its retryAfter", async () => {
  using mutations = new Mutations();
  const send = () => mutations.run((ctx) => ctx.rateLimit("send", perMinute(90, { burst: 2 })));
  for (const ts of [1, 2]) assert.deepEqual(await send(), { ts, failure: null });
  const refused = await send();
  assert.deepEqual([waitOf(refused), refused.ts], [667, 2]);
  assert.match(refused.failure?.message ?? "", /^Too many calls of "send": try again in 1 s$/);
  mutations.now += 666;
  assert.equal(waitOf(await send()), 1);
  mutations.now += 1;
  assert.equal(waitOf(await send()), null);
});

Deno.test("RA4: buckets in use once are removed by later calls", async () => {
  using mutations = new Mutations();
  const use = (key: string) => mutations.run((ctx) => ctx.rateLimit("send", perMinute(60, { key })));
  for (let n = 0; n < 20; n++) await use(`visitor ${n}`);
  assert.equal(mutations.stored, 20);
  mutations.now += 60_000;
  for (let n = 0; n < 9; n++) await use("regular");
  assert.equal(mutations.stored, 3);
  for (let n = 0; n < 2; n++) await use("regular");
  assert.equal(mutations.stored, 1);
});

Deno.test("RA2: a nested mutation that fails takes no token, and a caught refusal leaves the mutation running", async () => {
  using mutations = new Mutations();
  for (let n = 0; n < 3; n++) {
    const { failure } = await mutations.run(async (ctx) => {
      await assert.rejects(ctx.runMutation("app:inner"), /inner failed/);
    });
    assert.equal(failure, null);
  }
  assert.equal(mutations.stored, 0);
  const { failure } = await mutations.run(async (ctx) => {
    await ctx.rateLimit("once", perMinute(1));
    await assert.rejects(ctx.rateLimit("once", perMinute(1)), {
      code: "rate_limited",
      data: { name: "once", retryAfter: 60_000 },
    });
  });
  assert.equal(failure, null);
});

Deno.test("RA5: the limits in use are listed with the emptiest of their buckets", async () => {
  using mutations = new Mutations();
  assert.deepEqual(await mutations.list(), []);
  const take = (name: string, key: string, limit: RateLimit) =>
    mutations.run((ctx) => ctx.rateLimit(name, { ...limit, key }));
  for (let n = 0; n < 3; n++) await take("send", "ada", perMinute(5));
  await take("send", "linus", perMinute(5));
  await take("create", "", perMinute(2));
  const create = { name: "create", keys: 1, emptiest: { key: "", left: 1, burst: 2 } };
  assert.deepEqual(await mutations.list(), [
    create,
    { name: "send", keys: 2, emptiest: { key: "ada", left: 2, burst: 5 } },
  ]);
  mutations.now += 24_000;
  assert.deepEqual((await mutations.list())[1]?.emptiest, { key: "ada", left: 4, burst: 5 });
  mutations.forgetBursts();
  assert.deepEqual((await mutations.list()).map(({ keys, emptiest }) => [keys, emptiest]), [[1, null], [
    2,
    null,
  ]]);
  for (let n = 0; n < shownLimitsMax; n++) await take(`limit ${n}`, "", perMinute(1));
  assert.equal((await mutations.list()).length, shownLimitsMax);
});

Deno.test("a changed limit and a clock that was set back block no bucket", async () => {
  using mutations = new Mutations();
  const use = (limit: RateLimit) => mutations.run((ctx) => ctx.rateLimit("use", limit));
  for (let n = 0; n < 50; n++) assert.equal(waitOf(await use(perMinute(50))), null);
  assert.equal(waitOf(await use(perMinute(60, { burst: 1 }))), 1_000);
  mutations.now -= 86_400_000;
  assert.equal(waitOf(await use(perMinute(50))), null);
  assert.equal(waitOf(await use(perMinute(50))), null);
});

Deno.test("each invalid limit has a message that explains what to do", async () => {
  using mutations = new Mutations();
  const cases: readonly (readonly [name: unknown, limit: unknown, message: RegExp])[] = [
    ["", perMinute(1), /needs a name of 1 to 64 characters/],
    ["x".repeat(65), perMinute(1), /needs a name/],
    ["a", undefined, /rate limit "a" has rate undefined: use a number above 0/i],
    ["a", perMinute(0), /has rate 0: use a number above 0/],
    ["a", perMinute(Infinity), /has rate Infinity/],
    ["a", { rate: 1, per: "week" }, /has per week: use "second", "minute", "hour", "day" or milliseconds/],
    ["a", perMinute(1, { burst: 0.5 }), /has burst 0\.5: use a number from 1 on/],
    [
      "a",
      perMinute(1, { key: "x".repeat(257) }),
      /key of rate limit "a" must be a string of up to 256 characters/,
    ],
    ["a", { rate: 1, per: "day", burst: 32 }, /more than 31 days to refill/],
  ];
  for (const [name, limit, message] of cases) {
    const { failure } = await mutations.run((ctx) => ctx.rateLimit(name as string, limit as RateLimit));
    assert.match(failure?.message ?? "", message);
  }
});

Deno.test("clients and actions see when to try again, and queries have no rate limits", async () => {
  const send = untypedMutation({
    args: { key: z.string() },
    handler: async (ctx, { key }) => {
      await ctx.rateLimit("send", { key, rate: 1, per: "minute" });
    },
  });
  const relay = untypedAction({
    handler: async (ctx) => {
      await ctx.runMutation("app:send", { key: "relay" });
      return await ctx.runMutation("app:send", { key: "relay" }).catch(({ code, data }) => ({ code, data }));
    },
  });
  const misuse = untypedQuery({
    handler: (ctx) => (ctx as unknown as MutationCtx<AnyDataModel>).rateLimit("a", perMinute(1)),
  });
  const misused = untypedAction({
    handler: (ctx) => (ctx as unknown as MutationCtx<AnyDataModel>).rateLimit("a", perMinute(1)),
  });
  await using server = await createTestServer({ modules: { app: { send, relay, misuse, misused } } });
  await server.mutation("app:send", { key: "a" });
  await server.mutation("app:send", { key: "b" });
  await server.advance(20_000);
  const error: unknown = await server.mutation("app:send", { key: "a" }).catch((error: unknown) => error);
  assert.ok(error instanceof FunctionError);
  assert.deepEqual([error.code, error.retryAfter, error.data], ["rate_limited", 40_000, {
    name: "send",
    retryAfter: 40_000,
  }]);
  await server.advance(40_000);
  await server.mutation("app:send", { key: "a" });
  const data = { name: "send", retryAfter: 60_000 };
  assert.deepEqual(await server.action("app:relay"), { code: "rate_limited", data });
  await assert.rejects(
    server.query("app:misuse"),
    /ctx\.rateLimit is not available in queries: make the function a mutation/,
  );
  await assert.rejects(
    server.action("app:misused"),
    /ctx\.rateLimit is not available in actions: call it in a mutation/,
  );
  assert.equal(
    new FunctionError("x", { udfPath: "a", errorData: { code: "rate_limited", data: null }, logLines: [] })
      .retryAfter,
    null,
  );
});
