/** Readiness: checks, their frequency, and reports of failures. */
import assert from "node:assert/strict";
import { opsLimits, statsLimits } from "../../../mod/ops/limits.ts";
import { Readiness, type ReadinessOptions } from "../../../mod/ops/health/mod.ts";
import { startTestServer } from "../../auth/server/test_server.ts";

function setUp(options: Partial<ReadinessOptions> = {}) {
  const world = {
    now: 1_000_000,
    beats: 0,
    stored: null as number | null,
    /** Overrides a mutation or a query. */
    mutation: null as (() => Promise<never>) | null,
    stale: false,
    free: 10 * opsLimits.diskReserveBytes as number | null,
    listening: true,
    lagMs: null as number | null,
  };
  const readiness = new Readiness({
    calls: {
      mutate: (async (_: unknown, { beat }: { beat: number }) => {
        world.beats++;
        if (world.mutation !== null) return await world.mutation();
        if (!world.stale) world.stored = beat;
      }) as unknown as ReadinessOptions["calls"]["mutate"],
      query: (() => Promise.resolve(world.stored)) as unknown as ReadinessOptions["calls"]["query"],
    },
    freeBytes: () => Promise.resolve(world.free),
    listening: () => world.listening,
    replicationLagMs: () => world.lagMs,
    now: () => world.now,
    ...options,
  });
  return { world, readiness };
}

const good = {
  status: "ready",
  commits: "ok",
  reads: "ok",
  pushes: "ok",
  listener: "open",
  disk: "ok",
  replication: null,
};

Deno.test("[HE2] recent results are reused, and concurrent requests share a check", async () => {
  const { world, readiness } = setUp();
  const reports = await Promise.all([readiness.report(), readiness.report(), readiness.report()]);
  for (const report of reports) assert.deepEqual(report, good);
  world.now += statsLimits.readySeenMs - 1;
  await readiness.report();
  assert.equal(world.beats, 1);
  world.now += 1;
  await readiness.report();
  assert.equal(world.beats, 2);
});

Deno.test("[PG6] [PG12] a cluster's follower stays ready while the cluster's database is unreachable, and reports it", async () => {
  const part = { role: "follower" as "follower" | "leader", database: "ok" as "ok" | "away" };
  const follower = { ts: 5, lagCommits: 0, lagMs: statsLimits.followerLateMs };
  const { world, readiness } = setUp({ follower: () => follower, cluster: () => part });
  const late = { ...good, commits: "failing", follower };
  assert.deepEqual(await readiness.report(), { ...late, status: "unready", cluster: part });
  part.database = "away";
  assert.deepEqual(await readiness.report(), { ...late, cluster: part });
  // Commits go to the leader; a full disk is another matter.
  part.role = "leader";
  assert.equal((await readiness.report()).status, "unready");
  part.role = "follower";
  world.free = 0;
  assert.equal((await readiness.report()).status, "unready");
});

Deno.test("[PG12] a follower without a link to the leader is not ready, unless the cluster's database is unreachable", async () => {
  const part = { role: "follower", database: "ok" as "ok" | "away", link: "ok" as "ok" | "lost" } as const;
  const state: { -readonly [Name in keyof typeof part]: (typeof part)[Name] } = { ...part };
  const follower = { ts: 5, lagCommits: 0, lagMs: 0 };
  const { readiness } = setUp({ follower: () => follower, cluster: () => state });
  assert.deepEqual(await readiness.report(), { ...good, follower, cluster: part });
  state.link = "lost";
  const report = await readiness.report();
  assert.deepEqual([report.status, report.cluster?.link], ["unready", "lost"]);
  state.database = "away";
  assert.equal((await readiness.report()).status, "ready", "no other server could do more");
});

Deno.test("[HE3] it reports failures of commits, pushes and the disk, and the replication lag", async () => {
  const { world, readiness } = setUp();
  world.mutation = () => Promise.reject(new Error("disk full"));
  assert.deepEqual(await readiness.report(), {
    ...good,
    status: "unready",
    commits: "failing",
    reads: "failing",
    pushes: "failing",
  });
  world.mutation = null;
  world.stale = true;
  const stale = await readiness.report();
  assert.deepEqual([stale.status, stale.commits, stale.pushes], ["unready", "ok", "failing"]);
  world.stale = false;
  world.now += statsLimits.readySeenMs;
  world.free = opsLimits.diskReserveBytes;
  assert.deepEqual(await readiness.report(), { ...good, status: "unready", disk: "low" });
  world.free = null;
  world.lagMs = 70;
  assert.deepEqual(await readiness.report(), { ...good, disk: "unknown", replication: { lagMs: 70 } });
  world.lagMs = null;
  world.free = 1e12;
  world.listening = false;
  assert.deepEqual(await readiness.report(), { ...good, status: "unready", listener: "closed" });
});

Deno.test("[HE1] a running server answers anyone, and a check is one commit", async () => {
  await using server = await startTestServer();
  const before = (await (await fetch(`${server.url}/api/health`)).json()).ts;
  const response = await fetch(`${server.url}/api/health/ready`);
  assert.deepEqual([response.status, response.headers.get("cache-control")], [200, "no-store"]);
  assert.deepEqual(await response.json(), good);
  const after = (await (await fetch(`${server.url}/api/health`)).json()).ts;
  assert.ok(after > before);
});
