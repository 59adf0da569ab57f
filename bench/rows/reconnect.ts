/** A server that restarts under many sockets: from the first that is back to the last that shows its result again. */
import { type BenchContext, benchFunctions } from "../context.ts";
import { median } from "../support/statistics.ts";
import { ServerProcess } from "../../tests/support/processes/server_process.ts";
import type { Row } from "../table.ts";

const SOCKETS = 5000;
const TAKEN_OVER = 1_000;
const QUERIES = 100;
const NAME = "returning";

export async function reconnectRows(context: BenchContext): Promise<Row[]> {
  return [...await restartRows(context), await takeoverRow(context)];
}

async function restartRows(context: BenchContext): Promise<Row[]> {
  const rounds = context.full ? 5 : 2;
  await using inner = context.inner();
  const dataDir = inner.folder();
  let server = await ServerProcess.start({ dataDir, functions: benchFunctions });
  try {
    const { port } = server;
    await server.call("mutation", "rows:fill", { start: 0, count: QUERIES, chars: 100 });
    const load = inner.load();
    const subscribe = { udfPath: "rows:runsOf", args: '{"number":{n}}', queries: QUERIES };
    await load.run("openReturning", { name: NAME, port, sockets: SOCKETS, ...subscribe });
    const lastResultMs: number[] = [];
    const stopMs: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const stoppedAt = performance.now();
      await server.stop();
      stopMs.push(performance.now() - stoppedAt);
      server = await ServerProcess.start({ dataDir, functions: benchFunctions, port });
      const { closeCodes, values, ...result } = await load.run("awaitReturn", { name: NAME });
      lastResultMs.push(result.lastResultMs);
      const closed = JSON.stringify(closeCodes);
      if (closed !== JSON.stringify({ 1012: SOCKETS * (round + 1) })) {
        throw new Error(`Close codes: ${closed}`);
      }
      // Each result says how often its query has run in that process.
      const shown = JSON.stringify(values);
      if (shown !== JSON.stringify({ 1: SOCKETS })) throw new Error(`Queries ran more than once: ${shown}`);
    }
    const seconds = median(lastResultMs) / 1000;
    return [{
      name: `${SOCKETS} sockets back after 1012, to the last first result`,
      measured: `${seconds.toFixed(2)} s, ${QUERIES} queries run once each`,
      control: "5 s",
      ratio: seconds / 5,
      target: { atMost: 1 },
      details: { lastResultMs, stopMs },
    }];
  } finally {
    await server.stop();
  }
}

/** A server that takes over from another: from the first socket that is closed to the last that shows its result again. */
async function takeoverRow(context: BenchContext): Promise<Row> {
  const rounds = context.full ? 5 : 3;
  await using inner = context.inner();
  const dataDir = inner.folder();
  let server = await ServerProcess.start({ dataDir, functions: benchFunctions });
  try {
    const { port } = server;
    await server.call("mutation", "rows:fill", { start: 0, count: QUERIES, chars: 100 });
    const load = inner.load();
    const subscribe = { udfPath: "rows:runsOf", args: '{"number":{n}}', queries: QUERIES };
    await load.run("openReturning", { name: NAME, port, sockets: TAKEN_OVER, ...subscribe });
    const backMs: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const successor = await ServerProcess.start({
        ...{ dataDir, functions: benchFunctions, port },
        flags: ["--takeover"],
      });
      const { closeCodes, ...result } = await load.run("awaitReturn", { name: NAME });
      const { code } = await server.exited;
      await server[Symbol.asyncDispose]();
      server = successor;
      if (code !== 0) throw new Error(`The server that was taken over ended with ${code}`);
      const closed = JSON.stringify(closeCodes);
      if (closed !== JSON.stringify({ 1012: TAKEN_OVER * (round + 1) })) {
        throw new Error(`Close codes: ${closed}`);
      }
      backMs.push(result.backMs);
    }
    const seconds = median(backMs) / 1000;
    return {
      name: `${TAKEN_OVER} sockets back after a takeover, from the first that was closed`,
      measured: `${seconds.toFixed(2)} s, at the most ${(Math.max(...backMs) / 1000).toFixed(2)} s`,
      control: "1 s",
      ratio: seconds,
      target: { atMost: 1 },
      details: { backMs },
    };
  } finally {
    await server.stop();
  }
}
