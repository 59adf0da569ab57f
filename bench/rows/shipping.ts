/** How shipping to a replica behaves: what it holds up, how far behind it is, and what it asks for when nothing changes. */
import { Buffer } from "node:buffer";
import { FakeBucket } from "../../tests/ops/scheduled/fake_bucket.ts";
import { until } from "../../tests/support/waiting.ts";
import { type BenchContext, transferFunctions } from "../context.ts";
import { WORKLOAD_SEED } from "../../tests/support/processes/random.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";
import { median, percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";
import { seedAccounts } from "./transfer.ts";

const ACCOUNTS = 5_000;
const workload = { accounts: ACCOUNTS, alpha: 0, seed: WORKLOAD_SEED };
const LATE_SECONDS = "0.005";
const LOOK_MS = 50;

async function metricsOf({ port }: ServerProcess): Promise<(name: string) => number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const values = new Map(
    text.split("\n").map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]),
  );
  return (name) => values.get(name) ?? NaN;
}

/** Looks of main's event loop at its clock, and those that came more than 5 ms late. */
async function looks(server: ServerProcess): Promise<{ readonly all: number; readonly late: number }> {
  const value = await metricsOf(server);
  const name = "syncline_event_loop_lag_seconds";
  const all = value(`${name}_count`);
  return { all, late: all - value(`${name}_bucket{le="${LATE_SECONDS}"}`) };
}

export async function shippingRows(context: BenchContext): Promise<Row[]> {
  return [await heldUp(context), await behind(context), await idle(context)];
}

async function heldUp(outer: BenchContext): Promise<Row> {
  await using context = outer.inner();
  const rounds = context.full ? 9 : 4;
  const durationMs = context.full ? 5_000 : 2_000;
  const on = await context.serverWith(["--metrics", "--replicate-to", context.folder()], transferFunctions);
  const off = await context.serverWith(["--metrics"], transferFunctions);
  const load = context.load();
  const servers = { off, on };
  for (const server of Object.values(servers)) await seedAccounts(server, ACCOUNTS);
  const late = { off: [] as number[], on: [] as number[] };
  const rates: number[] = [];
  for (let round = -1; round < rounds; round++) {
    for (const which of round % 2 === 0 ? ["off", "on"] as const : ["on", "off"] as const) {
      const before = await looks(servers[which]);
      const { port } = servers[which];
      rates.push(
        await load.run("pacedCalls", { port, perSecond: 2_000, connections: 32, durationMs, workload }),
      );
      const after = await looks(servers[which]);
      // The first round warms up and does not count.
      if (round >= 0) late[which].push(1_000 * (after.late - before.late) / (after.all - before.all));
    }
  }
  const more = median(late.on) - median(late.off);
  return {
    name: "looks of main's loop more than 5 ms late at 2,000 commits/s, replicated: of 1,000, more than not",
    measured: `${median(late.on).toFixed(1)} of 1,000 (${median(rates).toFixed(0)} commits/s)`,
    control: `${median(late.off).toFixed(1)} of 1,000 not replicated`,
    ratio: more,
    target: { atMost: 5 },
    details: { late, rates },
  };
}

async function behind(outer: BenchContext): Promise<Row> {
  await using context = outer.inner();
  const durationMs = context.full ? 60_000 : 12_000;
  const server = await context.serverWith(
    ["--metrics", "--replicate-to", context.folder()],
    transferFunctions,
  );
  await seedAccounts(server, ACCOUNTS);
  await shipped(server);
  const lags: number[] = [];
  let ended = false;
  const load = context.load().run("pacedCalls", {
    ...{ port: server.port, perSecond: 500, connections: 8, durationMs, workload },
  }).finally(() => ended = true);
  while (!ended) {
    lags.push((await metricsOf(server))("syncline_replication_lag_seconds"));
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  const perSecond = await load;
  const p99 = percentile(lags, 0.99);
  return {
    name: "the target behind the newest commit at 500 commits/s, p99: s",
    measured: `${p99.toFixed(2)} s (p50 ${percentile(lags, 0.5).toFixed(2)} s)`,
    control: `${perSecond.toFixed(0)} commits/s, shipped each second`,
    ratio: p99,
    target: { atMost: 1.5 },
    details: { lags },
  };
}

async function idle(outer: BenchContext): Promise<Row> {
  await using context = outer.inner();
  const durationMs = context.full ? 120_000 : 15_000;
  await using bucket = new FakeBucket();
  const location = bucket.location();
  const server = await context.serverWith([
    ...["--metrics", "--replicate-to", `s3://${location.bucket}/replica`],
    ...["--s3-endpoint", location.endpoint ?? "", "--s3-region", location.region],
    ...["--s3-access-key-id", location.accessKeyId, "--s3-secret-access-key", location.secretAccessKey],
  ], transferFunctions);
  await seedAccounts(server, ACCOUNTS);
  await shipped(server);
  // The snapshot of the generation, and what belongs to it.
  await until(() => [...bucket.objects.keys()].some((key) => key.includes("/snapshots/")));
  await shipped(server);
  // The work after a snapshot has ended when no request arrived for a while.
  for (let seen = -1; seen !== bucket.requests.length;) {
    seen = bucket.requests.length;
    await new Promise((resolve) => setTimeout(resolve, 3_000));
  }
  const before = bucket.requests.length;
  await new Promise((resolve) => setTimeout(resolve, durationMs));
  const requests = (bucket.requests.length - before) / (durationMs / 60_000);
  const bytes = [...bucket.objects.values()].reduce((sum, object) => sum + Buffer.byteLength(object), 0);
  return {
    name: "requests to a bucket in a minute in which nothing changes",
    measured: `${requests.toFixed(0)}`,
    control: `${before} until then, for ${bytes} bytes`,
    ratio: requests,
    target: { atMost: 0 },
    details: { durationMs },
  };
}

async function shipped(server: ServerProcess): Promise<void> {
  await until(async () => (await metricsOf(server))("syncline_replication_lag_commits") === 0);
}
