/** Run statistics: sliding windows, percentiles, limits, and restarts. */
import assert from "node:assert/strict";
import type { RunEnd } from "../../../mod/functions/host/mod.ts";
import { statsLimits } from "../../../mod/ops/limits.ts";
import { RunStats } from "../../../mod/ops/stats/run_stats.ts";
import { Histogram, LATENCY_BOUNDS } from "../../../mod/ops/stats/counters.ts";

const START = Date.UTC(2030, 0, 1, 12);
const identity = { principal: null, userId: null, adminId: null, sessionId: null };

function setUp() {
  const clock = { now: START };
  const stats = new RunStats({ now: () => clock.now });
  const saved = new Map<string, { span: "minute" | "quarter" | "hour"; at: number; text: string }>();
  const pass = (ms: number) => {
    for (const end = clock.now + ms; clock.now < end;) {
      clock.now = Math.min(end, clock.now + statsLimits.slotMs);
      for (const figures of stats.advance()) saved.set(`${figures.span} ${figures.at}`, figures);
    }
  };
  return { clock, stats, saved, pass };
}

function ended(udfPath: string, { ms = 1, error = null as "internal" | "user" | null } = {}): RunEnd {
  return {
    outcome: error === null
      ? { ok: true, value: "null", logLines: [] }
      : { ok: false, error: { kind: error, message: "no", data: null }, logLines: [] },
    ms: ms + 1,
    call: { udfPath, identity },
    request: 1,
    ts: 1,
    version: null,
    durationMs: ms,
    queuedMs: 0,
    use: { documentsRead: 2, indexRowsRead: 3, documentsWritten: 4, indexRowsWritten: 5 },
  };
}

Deno.test("[ST2] a function's calls, errors, percentiles and volume over a minute, an hour and a day", () => {
  const { stats, pass } = setUp();
  for (let ms = 1; ms <= 100; ms++) stats.runEnded("mutation", ended("a:b", { ms }));
  stats.runEnded("mutation", ended("a:b", { ms: 1, error: "internal" }));
  stats.runEnded("mutation", ended("a:b", { ms: 1, error: "user" }));
  stats.runEnded("query", ended("a:b"));
  stats.cacheHit("a:b");
  const [mutation, query] = stats.functions();
  assert.deepEqual([mutation?.kind, mutation?.minute?.calls, mutation?.minute?.errors], ["mutation", 102, 1]);
  assert.deepEqual(
    [mutation?.minute?.documentsRead, mutation?.minute?.indexRowsWritten],
    [2 * 102, 5 * 102],
  );
  for (const [name, wanted] of [["p50", 50], ["p95", 95], ["p99", 99]] as const) {
    const reported = mutation?.minute?.[name] ?? 0;
    assert.ok(Math.abs(reported - wanted) / wanted < 0.25, `${name} is ${reported}`);
  }
  assert.deepEqual([query?.minute?.calls, query?.minute?.cacheHits], [1, 1]);
  pass(2 * 60_000);
  assert.deepEqual([stats.functions()[0]?.minute, stats.functions()[0]?.hour?.calls], [null, 102]);
  pass(3_600_000);
  assert.deepEqual([stats.functions()[0]?.hour, stats.functions()[0]?.day?.calls], [null, 102]);
  pass(26 * 3_600_000);
  assert.deepEqual(stats.functions(), []);
});

Deno.test("[ST2] incremental window sums equal recomputed ones", () => {
  const { stats, saved, pass, clock } = setUp();
  const runs: { readonly at: number; readonly path: string }[] = [];
  for (let step = 0; step < 400; step++) {
    const path = `a:${step * step % 7}`;
    for (let call = step % 5; call >= 0; call--) {
      stats.runEnded("query", ended(path, { ms: 1 + step % 9 }));
      runs.push({ at: clock.now, path });
    }
    pass(statsLimits.slotMs * (1 + step % 40));
    // Read at each step, so that the cached sums must follow; a new instance recomputes all.
    const reported = stats.functions();
    if (step % 20 !== 0) continue;
    const restored = new RunStats({ now: () => clock.now });
    restored.restore([...saved.values()]);
    const sums = (of: typeof reported) => of.map(({ function: name, hour, day }) => ({ name, hour, day }));
    const byName = (a: { name: string }, b: { name: string }) => a.name < b.name ? -1 : 1;
    assert.deepEqual(sums(reported).sort(byName), sums(restored.functions()).sort(byName), `step ${step}`);
    assert.deepEqual(
      stats.history().filter(({ calls }) => calls > 0),
      restored.history().filter(({ calls }) => calls > 0),
    );
    const { day } = reported.reduce((all, { day }) => ({ day: all.day + (day?.calls ?? 0) }), { day: 0 });
    assert.ok(day > 0 && day <= runs.length);
  }
});

Deno.test("[ST3] an hour's history by minute, restored after a restart", () => {
  const { stats, saved, pass, clock } = setUp();
  for (let minute = 0; minute < 90; minute++) {
    for (let call = 0; call <= minute; call++) stats.runEnded("mutation", ended("a:b"));
    pass(60_000);
  }
  const wanted = stats.history().slice(-60, -1);
  assert.equal(wanted.length, 59);
  assert.deepEqual(wanted.at(-1)?.calls, 90);
  assert.ok((wanted.at(-1)?.commitMs.p50 ?? 0) > 1.5);
  stats.runEnded("query", ended("a:b"));
  for (const figures of stats.flush()) saved.set(`${figures.span} ${figures.at}`, figures);
  const again = new RunStats({ now: () => clock.now });
  again.runEnded("query", ended("a:b"));
  again.restore([...saved.values(), { span: "minute", at: clock.now, text: "not JSON" }]);
  const history = again.history();
  assert.deepEqual(history.slice(-60, -1), wanted);
  assert.equal(history.at(-1)?.calls, 2, "the minute is still counting");
  assert.equal(again.functions().find(({ kind }) => kind === "mutation")?.day?.calls, 90 * 91 / 2);
});

Deno.test("[ST4] functions are counted individually up to a limit, made-up names under one", () => {
  const { stats } = setUp();
  for (let i = 0; i < 2 * statsLimits.functionsMax; i++) stats.runEnded("query", ended(`m:f${i}`));
  for (let i = 0; i < 10; i++) {
    stats.runEnded("query", {
      ...ended(`made:up${i}`),
      outcome: { ok: false, error: { kind: "unknown_function", message: "", data: null }, logLines: [] },
    });
  }
  const functions = stats.functions();
  assert.ok(functions.length <= statsLimits.functionsMax + 1);
  const calls = functions.reduce((sum, { minute }) => sum + (minute?.calls ?? 0), 0);
  assert.equal(calls, 2 * statsLimits.functionsMax + 10, "none is lost");
  assert.ok(functions.every(({ function: path }) => !path.startsWith("made")));
});

Deno.test("[ST2] percentiles of equal values stay within their bucket", () => {
  const latencies = new Histogram(LATENCY_BOUNDS);
  assert.deepEqual(latencies.percentiles, { p50: null, p95: null, p99: null });
  for (const ms of [0, 0.001, 1e9, -1]) latencies.add(ms);
  assert.equal(latencies.count, 4);
  assert.ok((latencies.percentiles.p50 ?? 1) <= 0.01);
  assert.ok((latencies.percentiles.p99 ?? 0) > 300_000);
  const copy = new Histogram(LATENCY_BOUNDS);
  copy.unpack(latencies.pack());
  assert.deepEqual(copy.percentiles, latencies.percentiles);
  assert.deepEqual(copy.pack(), latencies.pack());
});
