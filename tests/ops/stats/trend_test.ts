/** Figures by quarter of an hour for charts of a day and a week. */
import assert from "node:assert/strict";
import type { RunEnd } from "../../../mod/functions/host/mod.ts";
import { statsLimits } from "../../../mod/ops/limits.ts";
import { type GaugesAt, RunStats, Trend } from "../../../mod/ops/stats/mod.ts";

const QUARTER_MS = statsLimits.trendMs;
const start = Date.parse("2026-06-01T12:00:00Z");

class World {
  now: number;
  readonly history: GaugesAt[] = [];
  readonly runs: RunStats;
  readonly trend: Trend;

  constructor(now = start) {
    this.now = now;
    this.runs = new RunStats({ now: () => this.now });
    this.trend = new Trend({ runs: this.runs, gauges: this, now: () => this.now });
  }

  run(calls: number): void {
    for (let i = 0; i < calls; i++) {
      this.runs.runEnded(
        "query",
        {
          call: { udfPath: "a:b" },
          outcome: { ok: true },
          durationMs: 1,
          queuedMs: 0,
          ms: 1,
          use: null,
        } as unknown as RunEnd,
      );
    }
  }

  /** Moves the clock, with a sample every minute. */
  pass(ms: number) {
    const saved = [];
    for (const end = this.now + ms; this.now < end;) {
      this.now += 60_000;
      saved.push(...this.runs.advance(), ...this.trend.advance());
      const sockets = this.history.length + 1;
      this.history.push({ at: this.now, sockets, subscriptions: 0, memory: 1, stored: 2, diskFree: null });
    }
    return saved;
  }

  get calls(): number[] {
    return this.trend.points(86_400_000).map(({ calls }) => calls);
  }
}

Deno.test("ST7 a quarter of an hour sums up its minutes, and the last one is growing", () => {
  const world = new World();
  world.run(2);
  world.pass(5 * 60_000);
  world.run(3);
  world.pass(QUARTER_MS - 5 * 60_000);
  world.run(1);
  assert.deepEqual(world.calls, [5, 1]);
  const [first] = world.trend.points(86_400_000);
  // The sample of minute 14 is its last one.
  assert.deepEqual([first?.at, first?.gauges?.sockets, first?.runMs.p50 !== null], [start, 14, true]);
  world.pass(QUARTER_MS);
  assert.deepEqual(world.calls, [5, 1, 0]);
  // A shorter range has fewer points.
  assert.equal(world.trend.points(QUARTER_MS).length, 1);
});

Deno.test("ST7 points survive a restart, and the interrupted quarter continues", () => {
  const before = new World();
  before.run(5);
  const saved = before.pass(QUARTER_MS + 5 * 60_000);
  before.run(2);
  saved.push(...before.runs.flush());
  const after = new World(before.now + 60_000);
  after.run(1);
  after.runs.restore(saved);
  after.trend.restore(saved);
  assert.deepEqual(after.calls, [5, 3]);
  // Its end during the downtime is no loss.
  const later = new World(before.now + QUARTER_MS);
  later.runs.restore(saved);
  later.trend.restore(saved);
  later.trend.advance();
  assert.deepEqual(later.calls, [5, 2, 0]);
});

Deno.test("ST7 a week is kept", () => {
  const world = new World();
  const points = statsLimits.trendKept + 10;
  for (let i = 0; i < points; i++) {
    world.now += QUARTER_MS;
    world.runs.advance();
    world.run(1);
    world.trend.advance();
  }
  assert.equal(world.trend.points(Infinity).length, statsLimits.trendKept + 1);
});
