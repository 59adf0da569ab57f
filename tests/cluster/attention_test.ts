/** How a follower finds that somebody looks at what it shows, and what the first one waits for. */
import assert from "node:assert/strict";
import { Attention } from "../../mod/cluster/postgres/attention.ts";
import { clusterLimits } from "../../mod/cluster/postgres/limits.ts";
import { activityTracker, caughtUpWith } from "../../mod/server/features/cluster.ts";
import { FakeClock, settled } from "../support/fake_clock.ts";

/** A follower whose log ends at `end`; `null`: that cannot be asked. */
function follower(clock: FakeClock) {
  const it = {
    woken: 0,
    watched: false,
    shown: 5,
    end: 5 as number | null,
    awayMs: null as number | null,
    refused: null as Error | null,
  };
  const attention = new Attention({ isWatched: () => it.watched, wake: () => void it.woken++, clock });
  const cluster = {
    look: () => attention.pay(),
    end: () =>
      it.refused !== null
        ? Promise.reject(it.refused)
        : Promise.resolve(it.end === null ? null : { seq: it.end, ts: it.end }),
    get figures() {
      return { role: "follower" as const, epoch: 1, awayMs: it.awayMs, takeovers: 0, unlinkedMs: null };
    },
  };
  const host = {
    get ts() {
      return it.shown;
    },
  };
  const caughtUp = caughtUpWith(cluster, { host, stuck: () => false, clock });
  return Object.assign(it, { attention, caughtUp, looked: activityTracker(cluster, caughtUp) });
}

Deno.test("[PG5] who looks at a follower is taken to look for a while; sockets look all the time", () => {
  const clock = new FakeClock();
  const it = follower(clock);
  assert.equal(it.attention.isPaid, false);
  assert.equal(it.attention.pay(), true);
  assert.equal(it.attention.pay(), false);
  clock.move(clusterLimits.lookMs - 1);
  assert.equal(it.attention.isPaid, true);
  assert.equal(it.attention.pay(), false, "it lasts from the last look on");
  clock.move(clusterLimits.lookMs);
  assert.equal(it.attention.isPaid, false);
  it.watched = true;
  assert.equal(it.attention.isPaid, true);
  assert.equal(it.attention.pay(), false);
  assert.equal(it.woken, 1);
});

Deno.test("[PG5] requests that come when nobody had looked wait for what was there, and those behind them do not", async () => {
  const clock = new FakeClock();
  const it = follower(clock);
  it.end = 9;
  for (const path of ["/api/health", "/api/health/ready", "/metrics"]) assert.equal(it.looked(path), null);
  assert.equal(it.woken, 0, "who watches over a server does not look at what it shows");
  const done: string[] = [];
  const ask = (name: string) => it.looked("/api/query")?.then(() => done.push(name));
  assert.ok(ask("first") !== undefined && ask("second") !== undefined);
  assert.equal(it.woken, 1);
  assert.equal(it.looked("/api/health/ready"), null, "nor does it wait behind somebody who does");
  assert.equal(it.looked("/api/sync"), null, "a socket waits by itself");
  clock.move(clusterLimits.socketLookMs);
  await settled();
  assert.deepEqual(done, []);
  it.shown = 9;
  await settled();
  clock.move(clusterLimits.socketLookMs);
  await settled();
  assert.deepEqual(done, ["first", "second"]);
  assert.equal(ask("third"), undefined);
  it.end = 12;
  clock.move(clusterLimits.lookMs);
  assert.ok(ask("fourth") !== undefined);
  await settled();
  clock.move(clusterLimits.firstLookWaitMs);
  await settled();
  assert.deepEqual(done, ["first", "second", "fourth"], "for a bounded time");
});

Deno.test("[PG5] [PG6] while the database is away nobody waits for what cannot come", () => {
  const clock = new FakeClock();
  const it = follower(clock);
  it.awayMs = 10;
  it.end = null;
  assert.equal(it.looked("/api/query"), null);
  assert.equal(it.woken, 1);
});

Deno.test("[PG5] what the database refuses keeps nobody from what is shown here", async () => {
  const it = follower(new FakeClock());
  it.refused = new Error("password authentication failed");
  await it.looked("/api/query");
  assert.equal(it.woken, 1);
  assert.equal(it.looked("/api/query"), null);
});

Deno.test("[PG5] a socket has what comes together applied at once", async () => {
  const clock = new FakeClock();
  const it = follower(clock);
  await it.caughtUp();
  assert.equal(it.woken, 1);
});
