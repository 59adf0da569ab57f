/** Shipping to a replica: delays of main's event loop, lag of the target, and requests while nothing changes. */
import { Buffer } from "node:buffer";
import { FakeBucket } from "../../tests/ops/scheduled/fake_bucket.ts";
import { pause, until } from "../../tests/support/waiting.ts";
import { type BenchContext, transferFunctions } from "../context.ts";
import { WORKLOAD_SEED } from "../../tests/support/processes/random.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";
import { alternate } from "../support/rounds.ts";
import { seedAccounts } from "../support/seed.ts";
import { median, percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const ACCOUNTS = 5_000;
const workload = { accounts: ACCOUNTS, alpha: 0, seed: WORKLOAD_SEED };
const SAMPLE_MS = 50;

export async function shippingRows(context: BenchContext): Promise<Row[]> {
  return [await eventLoopRow(context), await lagRow(context), await idleRow(context)];
}

/** Returns a function that returns the current value of a metric. */
async function metricsOf({ port }: ServerProcess): Promise<(name: string) => number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const values = new Map(
    text.split("\n").map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]),
  );
  return (name) => values.get(name) ?? NaN;
}

/** Measurements of the delay of main's event loop, and those with more than 5 ms. */
async function eventLoopDelays(
  server: ServerProcess,
): Promise<{ readonly all: number; readonly long: number }> {
  const value = await metricsOf(server);
  const name = "syncline_event_loop_lag_seconds";
  const all = value(`${name}_count`);
  return { all, long: all - value(`${name}_bucket{le="0.005"}`) };
}

async function eventLoopRow(outer: BenchContext): Promise<Row> {
  await using context = outer.inner();
  const durationMs = context.full ? 5_000 : 2_000;
  const off = await context.server(transferFunctions, { flags: ["--metrics"] });
  const on = await context.server(transferFunctions, {
    flags: ["--metrics", "--replicate-to", context.folder()],
  });
  for (const server of [off, on]) await seedAccounts(server, ACCOUNTS);
  const load = context.load();
  const measure = (server: ServerProcess) => async () => {
    const before = await eventLoopDelays(server);
    const options = { port: server.port, perSecond: 2_000, connections: 32, durationMs, workload };
    const { perSecond } = await load.run("pacedCalls", options);
    const after = await eventLoopDelays(server);
    return { longPer1000: 1_000 * (after.long - before.long) / (after.all - before.all), perSecond };
  };
  const rounds = await alternate(context.full ? 9 : 4, { off: measure(off), on: measure(on) });
  const longPer1000 = (side: "off" | "on") => median(rounds[side].map(({ longPer1000 }) => longPer1000));
  const rate = median([...rounds.off, ...rounds.on].map(({ perSecond }) => perSecond));
  return {
    name:
      "event loop of main delayed by more than 5 ms at 2,000 commits/s, replicated: additional times in 1,000",
    measured: `${longPer1000("on").toFixed(1)} in 1,000 (${rate.toFixed(0)} commits/s)`,
    control: `${longPer1000("off").toFixed(1)} in 1,000 not replicated`,
    ratio: longPer1000("on") - longPer1000("off"),
    target: { atMost: 5 },
    details: rounds,
  };
}

async function lagRow(outer: BenchContext): Promise<Row> {
  await using context = outer.inner();
  const durationMs = context.full ? 60_000 : 12_000;
  const server = await context.server(transferFunctions, {
    flags: ["--metrics", "--replicate-to", context.folder()],
  });
  await seedAccounts(server, ACCOUNTS);
  await allShipped(server);
  const lags: number[] = [];
  let isDone = false;
  const load = context.load().run("pacedCalls", {
    ...{ port: server.port, perSecond: 500, connections: 8, durationMs, workload },
  }).finally(() => isDone = true);
  while (!isDone) {
    lags.push((await metricsOf(server))("syncline_replication_lag_seconds"));
    await pause(SAMPLE_MS);
  }
  const { perSecond } = await load;
  const p99 = percentile(lags, 0.99);
  return {
    name: "lag of the target at 500 commits/s, p99",
    measured: `${p99.toFixed(2)} s (p50 ${percentile(lags, 0.5).toFixed(2)} s)`,
    control: `${perSecond.toFixed(0)} commits/s, shipped each second`,
    ratio: p99,
    target: { atMost: 1.5 },
    details: { lags },
  };
}

async function idleRow(outer: BenchContext): Promise<Row> {
  await using context = outer.inner();
  const durationMs = context.full ? 120_000 : 15_000;
  await using bucket = new FakeBucket();
  const location = bucket.location();
  const server = await context.server(transferFunctions, {
    flags: [
      ...["--metrics", "--replicate-to", `s3://${location.bucket}/replica`],
      ...["--s3-endpoint", location.endpoint ?? "", "--s3-region", location.region],
      ...["--s3-access-key-id", location.accessKeyId, "--s3-secret-access-key", location.secretAccessKey],
    ],
  });
  await seedAccounts(server, ACCOUNTS);
  await allShipped(server);
  await until(() => [...bucket.objects.keys()].some((key) => key.includes("/snapshots/")));
  await allShipped(server);
  // The work after the snapshot is finished when no requests arrive for three seconds.
  for (let last = -1; last !== bucket.requests.length;) {
    last = bucket.requests.length;
    await pause(3_000);
  }
  const before = bucket.requests.length;
  await pause(durationMs);
  const perMinute = (bucket.requests.length - before) / (durationMs / 60_000);
  const bytes = [...bucket.objects.values()].reduce((sum, object) => sum + Buffer.byteLength(object), 0);
  return {
    name: "requests to the bucket in an idle minute",
    measured: perMinute.toFixed(0),
    control: `${before} before, for ${bytes} bytes`,
    ratio: perMinute,
    target: { atMost: 0 },
    details: { durationMs },
  };
}

async function allShipped(server: ServerProcess): Promise<void> {
  await until(async () => (await metricsOf(server))("syncline_replication_lag_commits") === 0);
}
