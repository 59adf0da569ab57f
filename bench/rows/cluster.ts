/** A cluster of two servers on PostgreSQL, beside a single server: writes, followers and their sockets. */
import { TestPostgres } from "../../tests/cluster/support/postgres.ts";
import { FakeBucket } from "../../tests/ops/scheduled/fake_bucket.ts";
import { until } from "../../tests/support/waiting.ts";
import { type BenchContext, transferFunctions } from "../context.ts";
import { mutationMessage } from "../load/messages.ts";
import { treeMemory, treeTimeUs } from "../support/cost.ts";
import type { LoadProcess } from "../support/load_process.ts";
import { processorTimeUs } from "../../tests/support/processes/process_tree.ts";
import { WORKLOAD_SEED } from "../../tests/support/processes/random.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";
import { alternate } from "../support/rounds.ts";
import { seedAccounts } from "../support/seed.ts";
import { median, percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const ACCOUNTS = 20_000;
const COMMITS_PER_SECOND = 200;
const CATCH_UP_MS_MAX = 60_000;
/** Size of the log row of one transfer. */
const ROW_BYTES = 600;
/** A transfer, and a query whose result it changes. */
const mutation = { udfPath: "transfer:transfer", args: '{"from_id":7,"to_id":8,"amount":1}' };
const query = { udfPath: "accounts:get_account", args: '{"id":7}' };

interface Rig {
  readonly context: BenchContext;
  readonly load: LoadProcess;
  /** A server that is not part of the cluster. */
  readonly single: ServerProcess;
  readonly leader: ServerProcess;
}

export async function clusterRows(outer: BenchContext): Promise<Row[]> {
  await using postgres = await TestPostgres.start();
  await using bucket = new FakeBucket();
  await using context = outer.inner();
  const flags = flagsOf({ url: await postgres.database(), snapshots: context.folder(), bucket });
  const single = await context.server(transferFunctions);
  const leader = await context.server(transferFunctions, { flags });
  const rig: Rig = { context, load: context.load(), single, leader };
  for (const server of [single, leader]) await seedAccounts(server, ACCOUNTS);
  const rows = [await transferRow(rig), await singleTransferRow(rig, postgres)];
  // Started later, because it would use processor time during the rows above.
  const follower = await context.server(transferFunctions, { flags });
  return [
    ...rows,
    await applyRow(rig, follower, { hasSocket: false }),
    await applyRow(rig, follower, { hasSocket: true }),
    await deliveryDelayRow(rig, follower),
    ...await socketRows(rig, follower),
  ];
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

interface Clients {
  readonly clients: number;
  readonly inFlight: number;
  readonly durationMs: number;
}

function manyClients({ full }: BenchContext): Clients {
  return { clients: 64, inFlight: 40, durationMs: full ? 5_000 : 1_500 };
}

function runTransfers({ load }: Rig, { port }: ServerProcess, clients: Clients) {
  const workload = { accounts: ACCOUNTS, alpha: 0, seed: WORKLOAD_SEED };
  return load.run("webSocketLoop", { port, ...clients, workload });
}

function compareTransfers(rig: Rig, clients: Clients) {
  return alternate(rig.context.full ? 8 : 4, {
    single: () => runTransfers(rig, rig.single, clients),
    leader: () => runTransfers(rig, rig.leader, clients),
  });
}

async function transferRow(rig: Rig): Promise<Row> {
  const results = await compareTransfers(rig, manyClients(rig.context));
  const rate = (side: "single" | "leader") => median(results[side].map(({ perSecond }) => perSecond));
  return {
    name: "transfer, WebSocket, 64 clients x 40, a cluster's leader",
    measured: `${rate("leader").toFixed(0)}/s`,
    control: `${rate("single").toFixed(0)}/s by a single server`,
    ratio: rate("leader") / rate("single"),
    target: { atLeast: 0.7 },
    details: results,
  };
}

async function singleTransferRow(rig: Rig, postgres: TestPostgres): Promise<Row> {
  const durationMs = rig.context.full ? 3_000 : 1_000;
  const results = await compareTransfers(rig, { clients: 1, inFlight: 1, durationMs });
  const p50 = (side: "single" | "leader") => median(results[side].map(({ p50Ms }) => p50Ms));
  const insertMs = await bareInsertMs(postgres, durationMs);
  return {
    name: "single transfer at a cluster's leader: ms above a bare INSERT into PostgreSQL",
    measured: `${p50("leader").toFixed(3)} ms`,
    control: `${insertMs.toFixed(3)} ms INSERT, ${p50("single").toFixed(3)} ms by a single server`,
    ratio: p50("leader") - insertMs,
    target: { atMost: 2 },
    details: { ...results, insertMs },
  };
}

/** Returns the median time of sequential inserts into the same PostgreSQL. */
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

/** Processor time of a transfer on a follower, without sockets or with one, beside that on the server that executes it. */
async function applyRow(
  rig: Rig,
  follower: ServerProcess,
  { hasSocket }: { readonly hasSocket: boolean },
): Promise<Row> {
  const { single, leader, load, context } = rig;
  const clients = manyClients(context);
  const name = "reader";
  if (hasSocket) {
    await load.run("openSubscribers", {
      ...{ name, port: follower.port, sockets: 1, triggerPort: leader.port },
      subscribe: { ...query, perSocket: 1 },
    });
  }
  const times = {
    follower: [] as number[],
    followerMain: [] as number[],
    single: [] as number[],
    leader: [] as number[],
  };
  for (let round = 0; round <= (context.full ? 6 : 3); round++) {
    const singleBefore = await treeTimeUs(single.pid);
    const executed = await runTransfers(rig, single, clients);
    const singleUs = (await treeTimeUs(single.pid) - singleBefore) / executed.answered;
    await caughtUp(leader, follower);
    const before = {
      follower: await treeTimeUs(follower.pid),
      followerMain: await processorTimeUs(follower.pid),
      leader: await treeTimeUs(leader.pid),
    };
    const { answered } = await runTransfers(rig, leader, clients);
    await caughtUp(leader, follower);
    // The first round warms up.
    if (round === 0) continue;
    times.single.push(singleUs);
    times.follower.push((await treeTimeUs(follower.pid) - before.follower) / answered);
    times.followerMain.push((await processorTimeUs(follower.pid) - before.followerMain) / answered);
    times.leader.push((await treeTimeUs(leader.pid) - before.leader) / answered);
  }
  if (hasSocket) await load.run("closeSubscribers", { name });
  const us = (which: keyof typeof times) => median(times[which]).toFixed(1);
  return {
    name: `a follower's processor time for each transfer it applies, ${
      hasSocket ? "with a socket" : "without sockets"
    }`,
    measured: `${us("follower")} us, ${us("followerMain")} of them in main`,
    control: `${us("single")} us to execute it, ${us("leader")} us at the leader`,
    ratio: median(times.follower) / median(times.single),
    target: { atMost: 0.2 },
    details: times,
  };
}

/** Waits until a follower has applied all commits of the leader. */
async function caughtUp(leader: ServerProcess, follower: ServerProcess): Promise<void> {
  const tsOf = async ({ port }: ServerProcess): Promise<number> =>
    (await (await fetch(`http://127.0.0.1:${port}/api/health`)).json()).ts;
  const ts = await tsOf(leader);
  await until(async () => await tsOf(follower) >= ts, {
    what: "the follower has applied all commits",
    timeoutMs: CATCH_UP_MS_MAX,
    everyMs: 20,
  });
}

async function deliveryDelayRow({ load, leader, context }: Rig, follower: ServerProcess): Promise<Row> {
  const options = { from: leader.port, mutation, query, perSecond: COMMITS_PER_SECOND };
  const durationMs = context.full ? 10_000 : 5_000;
  await load.run("deliveryDelays", { ...options, to: follower.port, durationMs: 2_000 });
  const atFollower = await load.run("deliveryDelays", { ...options, to: follower.port, durationMs });
  const atLeader = await load.run("deliveryDelays", { ...options, to: leader.port, durationMs });
  const [p50, p99] = [percentile(atFollower, 0.5), percentile(atFollower, 0.99)];
  return {
    name: "commit at the leader to delivery at a follower, 200 commits/s, p99 ms",
    measured: `${p99.toFixed(1)} ms, p50 ${p50.toFixed(1)}`,
    control: `${percentile(atLeader, 0.99).toFixed(1)} ms at the leader`,
    ratio: p99,
    target: { atMost: 20 },
    details: { p50Ms: p50, maxMs: Math.max(...atFollower), commits: atFollower.length },
  };
}

/** Cost of a socket on a follower and of a delivery to it, beside a single server. */
async function socketRows({ load, single, leader, context }: Rig, follower: ServerProcess): Promise<Row[]> {
  const sockets = context.full ? 2_000 : 500;
  const commits = context.full ? 60 : 30;
  const measure = async (name: string, { pid, port }: ServerProcess, triggerPort: number) => {
    const before = await treeMemory(pid);
    await load.run("openSubscribers", {
      ...{ name, port, triggerPort, sockets },
      subscribe: { ...query, perSocket: 1 },
    });
    const bytes = ((await treeMemory(pid)).bytes - before.bytes) / sockets;
    const deliver = (commits: number) => {
      const messages = Array<string>(commits).fill(mutationMessage(mutation));
      const options = { deliveries: sockets, intervalMs: 20, marker: '"QueryUpdated"' };
      return load.run("trigger", { name, messages, ...options });
    };
    await deliver(5);
    const startUs = await treeTimeUs(pid);
    await deliver(commits);
    const deliveryUs = (await treeTimeUs(pid) - startUs) / (commits * sockets);
    await load.run("closeSubscribers", { name });
    return { bytes, deliveryUs };
  };
  const onSingle = await measure("single", single, single.port);
  const onFollower = await measure("follower", follower, leader.port);
  return [
    {
      name: `a delivery on one of ${sockets} sockets of a follower, processor time`,
      measured: `${onFollower.deliveryUs.toFixed(1)} us`,
      control: `${onSingle.deliveryUs.toFixed(1)} us on a single server`,
      ratio: onFollower.deliveryUs / onSingle.deliveryUs,
      target: { atMost: 1.2 },
      details: { onFollower, onSingle },
    },
    {
      name: "memory of a socket with one subscription on a follower",
      measured: `${(onFollower.bytes / 1_024).toFixed(1)} KiB`,
      control: `${(onSingle.bytes / 1_024).toFixed(1)} KiB on a single server`,
      ratio: onFollower.bytes / onSingle.bytes,
      target: null,
      details: {},
    },
  ];
}
