/** Every socket makes progress under constant commits. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { settle } from "./support/test_socket.ts";
import { World } from "./support/world.ts";

const STEP_MS = 10;
const durations = [10, 30, 100, 400, 1_000] as const;

interface Progress {
  /** Longest time between two Transitions of each socket, once it had its first results. */
  readonly standstillMs: number[];
}

interface Case {
  readonly durationsMs: readonly number[];
  /** Queries of each socket, by index. */
  readonly sockets: readonly (readonly number[])[];
  readonly readers: number;
  readonly timeMs: number;
}

/** Every commit affects every query. The duration of a run starts when its batch is pinned. */
async function run({ durationsMs, sockets, readers, timeMs }: Case): Promise<Progress> {
  const world = new World({ auto: false, readers });
  const pathOf = (query: number) => `q${query}`;
  for (const [query, durationMs] of durationsMs.entries()) {
    world.host.define(pathOf(query), (ctx) => ctx.get("a") ?? null);
    world.host.durationsMs.set(pathOf(query), durationMs);
  }
  const clients = sockets.map((queries) => {
    const socket = world.connected();
    socket.modify(...queries.map((query, queryId) => ({
      type: "Add" as const,
      queryId,
      udfPath: pathOf(query),
      args: {},
    })));
    return { socket, ts: -1, movedAt: 0, standstillMs: 0, started: false };
  });
  const startedAt = new Map<unknown, number>();
  for (let now = 0; now < timeMs; now += STEP_MS) {
    world.host.write({ a: now });
    await settle();
    world.host.pin();
    await settle();
    for (const batch of [...world.host.refreshBatches]) {
      const begun = startedAt.get(batch) ?? now;
      startedAt.set(batch, begun);
      for (const index of [...batch.left]) {
        const path = batch.queries[index]?.udfPath ?? "";
        if (now - begun >= (world.host.durationsMs.get(path) ?? 0)) world.host.answer(path, batch);
      }
    }
    await settle();
    for (const client of clients) {
      const { socket } = client;
      socket.report({ type: "Pong" });
      if (new Set([...socket.results.values()].map((known) => JSON.stringify(known))).size > 1) {
        throw new Error("results of different commits");
      }
      if (client.started) client.standstillMs = Math.max(client.standstillMs, now - client.movedAt);
      if (socket.version.ts !== client.ts) {
        client.movedAt = now;
        client.started = socket.results.size > 0;
      }
      client.ts = socket.version.ts;
    }
    world.clock.move(STEP_MS);
  }
  assert.ok(clients.every(({ started }) => started), "a socket without its first results");
  return { standstillMs: clients.map(({ standstillMs }) => standstillMs) };
}

Deno.test("SH6 every socket makes progress with any query costs and sharing", async () => {
  const arbitrary = fc.record({
    durationsMs: fc.array(fc.constantFrom(...durations), { minLength: 2, maxLength: 5 }),
    sockets: fc.array(fc.uniqueArray(fc.nat(4), { minLength: 1, maxLength: 4 }), {
      minLength: 1,
      maxLength: 5,
    }),
    readers: fc.integer({ min: 2, max: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(arbitrary, async ({ durationsMs, sockets, readers }) => {
      const shown = sockets.map((
        queries,
      ) => [...new Set(queries.map((query) => query % durationsMs.length))]);
      const slowest = Math.max(...durationsMs);
      const { standstillMs } = await run({ durationsMs, sockets: shown, readers, timeMs: 12_000 });
      for (const [i, standstill] of standstillMs.entries()) {
        const own = Math.max(...(shown[i] ?? []).map((query) => durationsMs[query] ?? 0));
        // Its own slowest query twice, the second in which it may be stuck unnoticed, and runs of others before it.
        const bound = 3 * own + 1_000 + 4 * slowest;
        assert.ok(
          standstill <= bound,
          `socket ${i} of ${JSON.stringify(shown)} stood still for ${standstill} ms`,
        );
      }
    }),
    { numRuns: 30 },
  );
});

Deno.test("SH6 a query is not starved by alternating runs of its neighbors", async () => {
  const { standstillMs } = await run({
    durationsMs: [10, 30, 100],
    sockets: [[1, 2], [2, 0]],
    readers: 2,
    timeMs: 12_000,
  });
  for (const ms of standstillMs) assert.ok(ms <= 1_000, `stood still for ${ms} ms`);
});

Deno.test("SH6 a slow shared query does not delay sockets that do not display it", async () => {
  const { standstillMs } = await run({
    durationsMs: [10, 2_000, 10],
    sockets: [[0], [0, 1], [1], [2], [0, 2]],
    readers: 4,
    timeMs: 20_000,
  });
  const [fast, both, slow, other, pair] = standstillMs;
  for (const [name, ms] of Object.entries({ fast, other, pair })) {
    assert.ok(Number(ms) <= 150, `${name} stood still for ${ms} ms`);
  }
  for (const [name, ms] of Object.entries({ both, slow })) {
    assert.ok(Number(ms) <= 4_200, `${name} stood still for ${ms} ms`);
  }
});
