/** Costs of several servers on one PostgreSQL, beside one server of the same run: writes, followers and their sockets. */
import assert from "node:assert/strict";
import { TestPostgres } from "../../tests/cluster/support/postgres.ts";
import { FakeBucket } from "../../tests/ops/scheduled/fake_bucket.ts";
import { type BenchContext, transferFunctions } from "../context.ts";
import { treeMemory, treeTimeUs } from "../support/cost.ts";
import type { LoadProcess } from "../support/load_process.ts";
import { processorTimeUs } from "../../tests/support/processes/process_tree.ts";
import { WORKLOAD_SEED } from "../../tests/support/processes/random.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";
import { median, percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";
import { seedAccounts } from "./transfer.ts";

const ACCOUNTS = 20_000;
const COMMITS_PER_SECOND = 200;
const CAUGHT_UP_MS = 60_000;
/** Of a row of the log with one transfer. */
const ROW_BYTES = 600;
const WATCHED = { from_id: 7, to_id: 8, amount: 1 };

interface Rig {
  readonly context: BenchContext;
  readonly load: LoadProcess;
  readonly alone: ServerProcess;
  readonly leader: ServerProcess;
}

export async function clusterRows(outer: BenchContext): Promise<Row[]> {
  await using postgres = await TestPostgres.start();
  await using bucket = new FakeBucket();
  const url = await postgres.database();
  await using context = outer.inner();
  const snapshots = context.folder();
  const member = () => context.serverWith(flagsOf({ url, snapshots, bucket }), transferFunctions);
  const alone = await context.server(transferFunctions);
  // Nobody follows yet: two servers on one machine would take one another's processors.
  const leader = await member();
  const rig: Rig = { context, load: context.load(), alone, leader };
  for (const server of [alone, leader]) await seedAccounts(server, ACCOUNTS);
  const rows = [await transfers(rig), await loneTransfer(rig, postgres)];
  const follower = await member();
  rows.push(await applied(rig, follower, { looks: false }), await applied(rig, follower, { looks: true }));
  rows.push(await delivered(rig, follower), ...await sockets(rig, follower));
  return rows;
}

function flagsOf({ url, snapshots, bucket }: {
  readonly url: string;
  readonly snapshots: string;
  readonly bucket: FakeBucket;
}): string[] {
  const { endpoint, accessKeyId, secretAccessKey } = bucket.location();
  return [
    ...["--cluster", url, "--cluster-secret", "a secret of all servers, 2030"],
    ...["--cluster-snapshots", snapshots, "--storage", "s3://files", "--s3-endpoint", endpoint ?? ""],
    ...["--s3-access-key-id", accessKeyId, "--s3-secret-access-key", secretAccessKey],
  ];
}

/** Transfers of many clients, or of one, at a server. */
async function loop({ load }: Rig, { port }: ServerProcess, { clients, inFlight, durationMs }: {
  readonly clients: number;
  readonly inFlight: number;
  readonly durationMs: number;
}) {
  const workload = { accounts: ACCOUNTS, alpha: 0, seed: WORKLOAD_SEED };
  const result = await load.run("webSocketLoop", {
    ...{ port, path: "/api/sync", clients, inFlight, durationMs },
    workload,
    eachAlone: true,
  });
  assert.equal(result.failed, 0, String(result.failure));
  return result;
}

/** Measures both, and alternates which goes first. The first round warms up and is discarded. */
async function paired<Result>(
  { context, alone, leader }: Rig,
  measure: (server: ServerProcess) => Promise<Result>,
): Promise<{ readonly alone: Result[]; readonly leader: Result[] }> {
  const results = { alone: [] as Result[], leader: [] as Result[] };
  for (let round = -1; round < (context.full ? 8 : 4); round++) {
    const order = round % 2 === 0 ? ["alone", "leader"] as const : ["leader", "alone"] as const;
    for (const which of order) {
      const result = await measure({ alone, leader }[which]);
      if (round >= 0) results[which].push(result);
    }
  }
  return results;
}

const many = (context: BenchContext) => ({
  clients: 64,
  inFlight: 40,
  durationMs: context.full ? 5_000 : 1_500,
});

async function transfers(rig: Rig): Promise<Row> {
  const results = await paired(rig, (server) => loop(rig, server, many(rig.context)));
  const rate = (which: "alone" | "leader") => median(results[which].map(({ perSecond }) => perSecond));
  return {
    name: "transfer, WebSocket, 64 clients x 40, a cluster's leader",
    measured: `${rate("leader").toFixed(0)}/s`,
    control: `${rate("alone").toFixed(0)}/s a server that is alone`,
    ratio: rate("leader") / rate("alone"),
    target: { atLeast: 0.7 },
    details: results,
  };
}

async function loneTransfer(rig: Rig, postgres: TestPostgres): Promise<Row> {
  const one = { clients: 1, inFlight: 1, durationMs: rig.context.full ? 3_000 : 1_000 };
  const results = await paired(rig, async (server) => (await loop(rig, server, one)).p50Ms);
  const insertMs = await bareInsertMs(postgres, one.durationMs);
  const leaderMs = median(results.leader);
  return {
    name: "lone transfer at a cluster's leader: ms more than a bare INSERT",
    measured: `${leaderMs.toFixed(3)} ms`,
    control: `${insertMs.toFixed(3)} ms INSERT, ${median(results.alone).toFixed(3)} ms alone`,
    ratio: leaderMs - insertMs,
    target: { atMost: 2 },
    details: { ...results, insertMs },
  };
}

/** The middle of what it takes to insert a row into that database, one after the other. */
async function bareInsertMs(postgres: TestPostgres, durationMs: number): Promise<number> {
  const client = await postgres.client("postgres");
  try {
    await client.query("create table bare (seq bigint primary key, body bytea not null)");
    const body = crypto.getRandomValues(new Uint8Array(ROW_BYTES));
    const text = "insert into bare (seq, body) values ($1, $2)";
    const times: number[] = [];
    for (const startedAt = performance.now(); performance.now() - startedAt < durationMs;) {
      const sentAt = performance.now();
      await client.query({ name: "bare", text, values: [times.length, body] });
      times.push(performance.now() - sentAt);
    }
    return median(times);
  } finally {
    await client.end();
  }
}

/**
 * Costs of a transfer on a follower, beside those on the server that executes it: without sockets on the follower, and with
 * one.
 */
async function applied(
  rig: Rig,
  follower: ServerProcess,
  { looks }: { readonly looks: boolean },
): Promise<Row> {
  const { alone, leader, load, context } = rig;
  const { from_id: id } = WATCHED;
  const onlooker = { name: "onlooker", port: follower.port, path: "/api/sync", sockets: 1 };
  if (looks) {
    const subscribe = { udfPath: "accounts:get_account", args: JSON.stringify({ id }), perSocket: 1 };
    await load.run("openAudience", {
      ...onlooker,
      triggerPath: "/api/sync",
      triggerPort: leader.port,
      subscribe,
    });
  }
  const shares = {
    follower: [] as number[],
    ofMain: [] as number[],
    alone: [] as number[],
    leader: [] as number[],
  };
  const rounds = context.full ? 6 : 3;
  for (let round = -1; round < rounds; round++) {
    const beforeAlone = await treeTimeUs(alone.pid);
    const executed = await loop(rig, alone, many(context));
    const aloneUs = (await treeTimeUs(alone.pid) - beforeAlone) / executed.answered;
    await caughtUp(leader, follower);
    const before = {
      follower: await treeTimeUs(follower.pid),
      ofMain: await processorTimeUs(follower.pid),
      leader: await treeTimeUs(leader.pid),
    };
    const { answered } = await loop(rig, leader, many(context));
    await caughtUp(leader, follower);
    if (round < 0) continue;
    shares.alone.push(aloneUs);
    shares.follower.push((await treeTimeUs(follower.pid) - before.follower) / answered);
    shares.ofMain.push((await processorTimeUs(follower.pid) - before.ofMain) / answered);
    shares.leader.push((await treeTimeUs(leader.pid) - before.leader) / answered);
  }
  if (looks) await load.run("closeAudience", { name: onlooker.name });
  const us = (which: keyof typeof shares) => median(shares[which]);
  return {
    name: `a follower's processor time for each transfer it applies, ${
      looks ? "with a" : "without any"
    } socket`,
    measured: `${us("follower").toFixed(1)} us, ${us("ofMain").toFixed(1)} of them in main`,
    control: `${us("alone").toFixed(1)} us to execute it, ${us("leader").toFixed(1)} us at the leader`,
    ratio: us("follower") / us("alone"),
    target: { atMost: 0.2 },
    details: shares,
  };
}

/** Waits until a follower shows what the leader has committed. */
async function caughtUp(leader: ServerProcess, follower: ServerProcess): Promise<void> {
  const tsOf = async ({ port }: ServerProcess): Promise<number> => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/health`);
    return (await answer.json()).ts;
  };
  const ts = await tsOf(leader);
  const endAt = performance.now() + CAUGHT_UP_MS;
  while (await tsOf(follower) < ts) {
    assert.ok(performance.now() < endAt, "the follower does not come to where the leader is");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function delivered({ load, leader, context }: Rig, follower: ServerProcess): Promise<Row> {
  const options = {
    from: leader.port,
    mutation: { udfPath: "transfer:transfer", args: WATCHED },
    query: { udfPath: "accounts:get_account", args: { id: WATCHED.from_id } },
    perSecond: COMMITS_PER_SECOND,
  };
  const durationMs = context.full ? 10_000 : 5_000;
  await load.run("relay", { ...options, to: follower.port, durationMs: 2_000 });
  const there = await load.run("relay", { ...options, to: follower.port, durationMs });
  const here = await load.run("relay", { ...options, to: leader.port, durationMs });
  const p99 = (delays: readonly number[]) => percentile(delays, 0.99);
  return {
    name: "commit at the leader to delivery at a follower, 200 commits/s, p99 ms",
    measured: `${p99(there).toFixed(1)} ms, p50 ${percentile(there, 0.5).toFixed(1)}`,
    control: `${p99(here).toFixed(1)} ms at the leader`,
    ratio: p99(there),
    target: { atMost: 20 },
    details: { p50Ms: percentile(there, 0.5), mostMs: Math.max(...there), commits: there.length },
  };
}

/** Costs of a socket on a follower and of a delivery on it, beside a single server. */
async function sockets({ load, alone, leader, context }: Rig, follower: ServerProcess): Promise<Row[]> {
  const count = context.full ? 2_000 : 500;
  const commits = context.full ? 60 : 30;
  const measured = async (server: ServerProcess, triggerPort: number, name: string) => {
    const before = await treeMemory(server.pid);
    await load.run("openAudience", {
      name,
      port: server.port,
      path: "/api/sync",
      triggerPath: "/api/sync",
      triggerPort,
      sockets: count,
      subscribe: {
        udfPath: "accounts:get_account",
        args: JSON.stringify({ id: WATCHED.from_id }),
        perSocket: 1,
      },
    });
    const bytes = (await treeMemory(server.pid) - before) / count;
    const run = (messages: number) =>
      load.run("triggerAudience", {
        name,
        messages: Array<string>(messages).fill(
          `{"type":"Mutation","requestId":{id},"udfPath":"transfer:transfer","args":${
            JSON.stringify(WATCHED)
          }}`,
        ),
        deliveries: count,
        intervalMs: 20,
        marker: '"QueryUpdated"',
      });
    await run(5);
    const from = await treeTimeUs(server.pid);
    await run(commits);
    const deliveryUs = (await treeTimeUs(server.pid) - from) / (commits * count);
    await load.run("closeAudience", { name });
    return { bytes, deliveryUs };
  };
  const onAlone = await measured(alone, alone.port, "alone");
  const onFollower = await measured(follower, leader.port, "follower");
  return [
    {
      name: `a delivery on one of ${count} sockets of a follower, processor time`,
      measured: `${onFollower.deliveryUs.toFixed(1)} us`,
      control: `${onAlone.deliveryUs.toFixed(1)} us alone`,
      ratio: onFollower.deliveryUs / onAlone.deliveryUs,
      target: { atMost: 1.2 },
      details: { onFollower, onAlone },
    },
    {
      name: "memory of a socket with one subscription on a follower",
      measured: `${(onFollower.bytes / 1_024).toFixed(1)} KiB`,
      control: `${(onAlone.bytes / 1_024).toFixed(1)} KiB alone`,
      ratio: onFollower.bytes / onAlone.bytes,
      target: null,
      details: {},
    },
  ];
}
