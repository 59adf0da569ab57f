/** Log streams without a server: recipients, slow readers, limits and ends. */
import assert from "node:assert/strict";
import { Hono } from "hono";
import type { Clock } from "../../../mod/kit/clock.ts";
import { failureResponse } from "../../../mod/kit/error_response.ts";
import { logLimits } from "../../../mod/ops/limits.ts";
import { adminGuard } from "../../../mod/ops/admin/admin_guard.ts";
import type { TailedRuns } from "../../../mod/ops/log/execution_log.ts";
import { logRoutes } from "../../../mod/ops/log/routes.ts";
import type { RunFilter } from "../../../mod/ops/log/run_filter.ts";
import { LogStreams } from "../../../mod/ops/log/stream/log_streams.ts";
import { FakeClock } from "../../support/fake_clock.ts";
import { EventReader } from "./support/event_reader.ts";

/** A log controlled by the test. */
class FakeLog {
  readonly tails = new Map<string, (tailed: TailedRuns) => void>();
  started = 0;
  /** Backlog of the next readers. */
  backlogs: () => Promise<{ events: string; missed: number; lastId: number }> = () =>
    Promise.resolve({ events: "", missed: 0, lastId: 0 });

  tail(filter: RunFilter, onRuns: (tailed: TailedRuns) => void): () => void {
    const key = JSON.stringify(filter);
    this.started++;
    this.tails.set(key, onRuns);
    return () => void this.tails.delete(key);
  }

  backlog() {
    return this.backlogs();
  }

  report(id: number, { filter = {}, chars = 10, missed = 0 } = {}): void {
    const events = `id: ${id}\nevent: run\ndata: ${JSON.stringify({ id, text: "x".repeat(chars) })}\n\n`;
    const bytes = new TextEncoder().encode(events);
    this.tails.get(JSON.stringify(filter))?.({ events: [bytes], missed, lastId: id });
  }
}

const session = { sessionId: "s1", principal: "admin:a", expiresAt: Date.now() + 3_600_000 };

function setUp(clock?: Clock) {
  const log = new FakeLog();
  const streams = new LogStreams(log, clock);
  const open = async (options: { filter?: RunFilter; after?: number; session?: typeof session } = {}) =>
    EventReader.of(await streams.open({ filter: {}, after: null, session, ...options }));
  return { log, streams, open };
}

Deno.test("[LS7] readers with the same filter share one tail, which ends with the last of them", async () => {
  const { log, streams, open } = setUp();
  using _ = streams;
  const [one, two, other] = [await open(), await open(), await open({ filter: { level: 3 } })];
  assert.equal(log.started, 2);
  log.report(1);
  log.report(2, { filter: { level: 3 } });
  assert.deepEqual([(await one.run()).id, (await two.run()).id, (await other.run()).id], [1, 1, 2]);
  await one[Symbol.asyncDispose]();
  assert.equal(log.tails.size, 2);
  await two[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
  assert.equal(log.tails.size, 0);
  assert.equal(streams.size, 0);
});

Deno.test("[LS6] runs that arrive during the backlog query follow it, once", async () => {
  const { log, streams, open } = setUp();
  using _ = streams;
  const answer = Promise.withResolvers<{ events: string; missed: number; lastId: number }>();
  log.backlogs = () => answer.promise;
  const opening = open({ after: 3 });
  log.report(5);
  log.report(6);
  const seen = (id: number) => `id: ${id}\nevent: run\ndata: {"id":${id}}\n\n`;
  answer.resolve({ events: seen(4) + seen(5), missed: 2, lastId: 5 });
  await using reader = await opening;
  log.report(7);
  assert.deepEqual(await reader.next(), { id: null, event: "missed", data: { count: 2 } });
  assert.deepEqual([await reader.run(), await reader.run()].map(({ id }) => id), [4, 5]);
  assert.deepEqual([await reader.run(), await reader.run()].map(({ id }) => id), [6, 7]);
});

Deno.test("[LS8] a slow reader delays no one: it skips runs that do not fit and gets their number", async () => {
  const { log, streams, open } = setUp();
  using _ = streams;
  await using quick = await open();
  await using slow = await open();
  const chars = 16 * 1024;
  const fitting = Math.ceil(logLimits.streamBytesMax / chars);
  const received = 4 * fitting;
  for (let id = 1; id <= received; id++) {
    log.report(id, { chars });
    assert.equal((await quick.run()).id, id);
  }
  let read = 0;
  for (let event = await slow.next(); event !== null; event = await slow.next()) {
    if (event.event === "missed") {
      assert.equal(event.data.count, received - read);
      break;
    }
    read++;
  }
  assert.ok(read > 0 && read < received, `${read} of ${received}`);
  log.report(received + 1);
  assert.equal((await slow.run()).id, received + 1, "it continues with the next run");
  log.report(received + 2, { missed: 40 });
  assert.equal((await slow.run()).id, received + 2);
  assert.deepEqual(
    (await slow.next())?.data,
    { count: 40 },
    "also with more runs at once than a stream buffers",
  );
});

Deno.test("[LS11] a few readers are written to at a time, each with all events since its last slot", async () => {
  const clock = new FakeClock();
  const { log, streams } = setUp(clock);
  using _ = streams;
  const { streamWritesMax, streamTurnMs, streamRunsMax } = logLimits;
  const decoder = new TextDecoder();
  const texts = Array.from({ length: 3 * streamWritesMax }, () => "");
  for (const reader of texts.keys()) {
    const stream = await streams.open({ filter: {}, after: null, session });
    void stream.pipeTo(
      new WritableStream({ write: (chunk) => void (texts[reader] += decoder.decode(chunk)) }),
    ).catch(() => {});
  }
  const having = (text: string) => texts.filter((read) => read.includes(text)).length;
  const ids = (text = "") => [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
  log.report(1);
  await clock.advance(0);
  assert.equal(having("id: 1\n"), streamWritesMax);
  log.report(2);
  await clock.advance(streamTurnMs);
  assert.equal(having("id: 1\n"), 2 * streamWritesMax);
  assert.equal(having("id: 2\n"), streamWritesMax, "those who had a turn wait for the others");
  await clock.advance(2 * streamTurnMs);
  assert.equal(having("id: 2\n"), texts.length);
  for (const text of texts) assert.deepEqual(ids(text), [1, 2]);
  // More than the capacity of the buffer.
  await clock.advance(10 * streamTurnMs);
  for (let id = 3; id < 3 + streamRunsMax + 5; id++) log.report(id);
  log.report(100, { missed: 7 });
  await clock.advance(3 * streamTurnMs);
  for (const text of texts) {
    assert.equal(ids(text).length, 2 + streamRunsMax);
    assert.match(text, /event: missed\ndata: \{"count":13\}\n\n$/, "the gap is reported in place");
  }
  log.report(101);
  await clock.advance(3 * streamTurnMs);
  for (const text of texts) assert.equal(ids(text).at(-1), 101);
});

Deno.test("[LS5] heartbeats are sent in slots like runs", async () => {
  const clock = new FakeClock();
  const { streams } = setUp(clock);
  using _ = streams;
  const beats = Array.from({ length: 2 * logLimits.streamWritesMax }, () => 0);
  for (const reader of beats.keys()) {
    const stream = await streams.open({ filter: {}, after: null, session });
    void stream.pipeTo(new WritableStream({ write: () => void (beats[reader] = (beats[reader] ?? 0) + 1) }))
      .catch(() => {});
  }
  await clock.advance(0);
  const all = () => beats.reduce((sum, count) => sum + count, 0);
  assert.equal(all(), beats.length, "the first is at the start");
  await clock.advance(logLimits.heartbeatMs);
  assert.equal(all(), beats.length + logLimits.streamWritesMax);
  await clock.advance(logLimits.streamTurnMs);
  assert.deepEqual(beats, beats.map(() => 2));
});

Deno.test("[LS9] the number of streams is limited, and a closed one frees a slot", async () => {
  const { streams, open } = setUp();
  using _ = streams;
  const readers = [];
  for (let i = 0; i < logLimits.streamsMax; i++) readers.push(await open());
  await assert.rejects(open(), { code: "overloaded" });
  await readers[0]?.[Symbol.asyncDispose]();
  await using _again = await open();
  for (const reader of readers) await reader[Symbol.asyncDispose]();
});

Deno.test("[LS4] the streams of a session end with it, those of others do not", async () => {
  const { log, streams, open } = setUp();
  using _ = streams;
  await using mine = await open();
  await using theirs = await open({ session: { ...session, sessionId: "s2", principal: "admin:b" } });
  streams.sessionEnded({ sessionId: "s1" });
  assert.equal((await mine.next())?.event, "revoked");
  assert.equal(await mine.next(), null);
  log.report(1);
  assert.equal((await theirs.run()).id, 1);
  streams.sessionEnded({ principal: "admin:b" });
  assert.equal((await theirs.next())?.event, "revoked");
});

Deno.test("[LS3] a stream ends with `expired` when its token expires", async () => {
  const { streams } = setUp();
  using _ = streams;
  const identity = { principal: "admin:a", userId: null, adminId: "a", sessionId: "s1" };
  const app = new Hono()
    .use(
      "*",
      adminGuard(() =>
        Promise.resolve({ identity, expiresAt: Date.now() + 50, role: () => Promise.resolve("owner") })
      ),
    )
    .route(
      "/",
      logRoutes({
        log: { page: () => Promise.reject(new Error("unexpected")), facts: {} as never },
        streams,
        now: Date.now,
      }),
    );
  app.onError((error) => failureResponse(error, () => {}));
  const response = await app.request("/logs/stream", { headers: { Authorization: "Bearer t" } });
  assert.equal(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
  assert.equal(response.headers.get("cache-control"), "no-store");
  if (response.body === null) throw new Error("There is no body");
  await using reader = EventReader.of(response.body as ReadableStream<Uint8Array<ArrayBuffer>>);
  assert.equal((await reader.next())?.event, "expired");
  assert.equal(await reader.next(), null);
  assert.equal(streams.size, 0);
});

Deno.test("[LS10] a stopping server ends all streams and accepts no more", async () => {
  const { streams, open } = setUp();
  const reader = await open();
  streams[Symbol.dispose]();
  assert.equal(await reader.next(), null);
  await assert.rejects(open(), { code: "unavailable" });
});
