/** Restarts and takeovers of a server with many sockets, until all sockets have their results again. */
import assert from "node:assert/strict";
import { type BenchContext, benchFunctions } from "../context.ts";
import { seedRows } from "../support/seed.ts";
import { median } from "../support/statistics.ts";
import type { ReconnectResult } from "../load/reconnecting_sockets.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";
import type { Row } from "../table.ts";

const RESTART_SOCKETS = 5000;
const TAKEOVER_SOCKETS = 1_000;
const QUERIES = 100;

export async function reconnectRows(context: BenchContext): Promise<Row[]> {
  return [await restartRow(context), await takeoverRow(context)];
}

/** Replaces the server in each round. Returns the results of the sockets. */
async function replaceServers(
  outer: BenchContext,
  { sockets, rounds, flags = [], replace }: {
    readonly sockets: number;
    readonly rounds: number;
    /** Flags of the new servers. */
    readonly flags?: readonly string[];
    /** Starts the new server and waits until the old one has stopped. */
    readonly replace: (old: ServerProcess, start: () => Promise<ServerProcess>) => Promise<ServerProcess>;
  },
): Promise<ReconnectResult[]> {
  await using context = outer.inner();
  const dataDir = context.folder();
  let server = await context.server(benchFunctions, { dataDir });
  const { port } = server;
  await seedRows(server, { count: QUERIES, chars: 100 });
  const load = context.load();
  const query = { udfPath: "rows:runsOf", args: '{"number":{n}}', queries: QUERIES };
  await load.run("openReconnecting", { port, sockets, ...query });
  const results: ReconnectResult[] = [];
  for (let round = 0; round < rounds; round++) {
    server = await replace(server, () => context.server(benchFunctions, { dataDir, port, flags }));
    const result = await load.run("awaitReconnect", {});
    assert.deepEqual(result.closeCodes, { 1012: sockets });
    results.push(result);
  }
  return results;
}

async function restartRow(context: BenchContext): Promise<Row> {
  const results = await replaceServers(context, {
    sockets: RESTART_SOCKETS,
    rounds: context.full ? 5 : 2,
    replace: async (old, start) => {
      await old.stop();
      return await start();
    },
  });
  // The value of the query is the number of its runs in that process.
  for (const { values } of results) assert.deepEqual(values, { 1: RESTART_SOCKETS });
  const lastResultMs = results.map(({ lastResultMs }) => lastResultMs);
  const seconds = median(lastResultMs) / 1000;
  return {
    name: `time until ${RESTART_SOCKETS} sockets have their results after a restart`,
    measured: `${seconds.toFixed(2)} s, ${QUERIES} queries run once each`,
    control: "5 s",
    ratio: seconds / 5,
    target: { atMost: 1 },
    details: { lastResultMs },
  };
}

async function takeoverRow(context: BenchContext): Promise<Row> {
  const results = await replaceServers(context, {
    sockets: TAKEOVER_SOCKETS,
    rounds: context.full ? 5 : 3,
    flags: ["--takeover"],
    replace: async (old, start) => {
      const server = await start();
      assert.equal((await old.exited).code, 0);
      return server;
    },
  });
  const interruptionMs = results.map(({ interruptionMs }) => interruptionMs);
  const seconds = median(interruptionMs) / 1000;
  return {
    name: `time until ${TAKEOVER_SOCKETS} sockets have their results after a takeover`,
    measured: `${seconds.toFixed(2)} s, at most ${(Math.max(...interruptionMs) / 1000).toFixed(2)} s`,
    control: "1 s",
    ratio: seconds,
    target: { atMost: 1 },
    details: { interruptionMs },
  };
}
