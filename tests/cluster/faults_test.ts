/**
 * Three servers in processes of their own, whose leaders are killed, frozen and stopped while PostgreSQL restarts, with clients
 * that write and watch. `SYNCLINE_CLUSTER_TAKEOVERS` says how many takeovers there are, `SYNCLINE_CLUSTER_SEED` which.
 */
import assert from "node:assert/strict";
import { until } from "../support/waiting.ts";
import { Clients } from "./support/clients.ts";
import { TestPostgres } from "./support/postgres.ts";
import { type ClusterProcess, ProcessRig } from "./support/server_processes.ts";

const TAKEOVERS = Number(Deno.env.get("SYNCLINE_CLUSTER_TAKEOVERS") ?? 3);
const SEED = Number(Deno.env.get("SYNCLINE_CLUSTER_SEED") ?? 1);
const CLIENTS = Number(Deno.env.get("SYNCLINE_CLUSTER_CLIENTS") ?? 6);
const LONG_MS = 120_000;

function numbers(seed: number): (below: number) => number {
  let state = seed * 2654435761 >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor(state / 2 ** 32 * below);
  };
}

/** How a leader goes. The first rounds have one of each. */
const ENDS = ["SIGKILL", "freeze", "SIGTERM"] as const;

Deno.test({
  name:
    "[PG1] [PG3] [PG7] [PG13] [PG16] leaders that are killed, frozen and stopped lose nothing, do nothing twice and show nobody a step back",
  // What servers leave open as they are killed is the runtime's.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using postgres = await TestPostgres.start();
    await using rig = await ProcessRig.start(await postgres.database(), 3);
    const [first, ...others] = rig.servers;
    await first?.start();
    await Promise.all(others.map((server) => server.start()));
    await using clients = new Clients(rig.servers);
    await clients.begin({ writers: CLIENTS, watchers: CLIENTS });
    const pick = numbers(SEED);
    const pauses: { readonly end: string; readonly ms: number }[] = [];
    for (let round = 0; round < TAKEOVERS; round++) {
      const before = clients.acknowledged.length;
      await until(() => clients.acknowledged.length > before + 2 * CLIENTS || clients.faults.length > 0, {
        what: "writes go on",
        timeoutMs: LONG_MS,
      });
      const leader = await leaderOf(rig);
      const end = ENDS[round < ENDS.length ? round : pick(ENDS.length)] ?? "SIGKILL";
      clients.longestMs = 0;
      if (end === "freeze") leader.freeze();
      else await leader.end(end);
      if (round % 2 === 1) {
        await postgres.down("immediate");
        await postgres.up();
      }
      const gone = performance.now();
      await until(() => clients.lastAt > gone + 50 || clients.faults.length > 0, {
        what: `writes go on behind ${end} in round ${round}`,
        timeoutMs: LONG_MS,
      });
      pauses.push({ end, ms: Math.round(clients.longestMs) });
      if (end === "freeze") leader.thaw();
      else await leader.start();
      assert.deepEqual(clients.faults, [], `seed ${SEED}, round ${round}`);
    }
    await leaderOf(rig);
    await clients.end();
    assert.deepEqual(clients.faults, [], `seed ${SEED}`);
    assert.ok(clients.seen > CLIENTS, "watchers saw what was written");
    assert.equal(clients.answeredBy.size, rig.servers.length, "writes went by every server");
    const { length } = clients.acknowledged;
    for (const server of rig.servers) {
      let state = await clients.state(server);
      await until(async () => (state = await clients.state(server)).done >= length, {
        what: () => `${server.url} shows ${state.done} of ${length}`,
        timeoutMs: LONG_MS,
      });
      assert.equal(state.total, 800);
      const there = new Set(state.ledger);
      assert.equal(there.size, state.ledger.length, "nothing was done twice");
      assert.deepEqual(
        clients.acknowledged.filter((name) => !there.has(name)),
        [],
        "nothing acknowledged is lost",
      );
    }
    // deno-lint-ignore no-console -- who runs many wants to know how long nothing was written
    if (TAKEOVERS > ENDS.length) console.log(figuresOf(pauses, length));
  },
});

async function leaderOf(rig: ProcessRig): Promise<ClusterProcess> {
  let leader: ClusterProcess | null = null;
  await until(async () => (leader = await rig.leader()) !== null, {
    what: "there is a leader",
    timeoutMs: LONG_MS,
  });
  return leader ?? assert.fail();
}

function figuresOf(pauses: readonly { readonly end: string; readonly ms: number }[], writes: number): string {
  const lines = ENDS.map((end) => {
    const sorted = pauses.filter((pause) => pause.end === end).map(({ ms }) => ms).sort((a, b) => a - b);
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
    return `${end}: ${sorted.length} times, without writes for p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`;
  });
  return [`${pauses.length} takeovers, ${writes} writes acknowledged`, ...lines].join("\n");
}
