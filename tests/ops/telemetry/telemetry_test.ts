/** Telemetry without a server: trace contexts, bounds of the queue, failures of the collector. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { anonymous } from "../../../mod/functions/identity.ts";
import { type CallTrace, parseTraceparent } from "../../../mod/functions/call_trace.ts";
import type { RunEnd } from "../../../mod/functions/host/mod.ts";
import { failed, type Outcome } from "../../../mod/functions/outcome.ts";
import { forwardLine, type Log, type LogReceiver, plainFields } from "../../../mod/kit/log.ts";
import { functionLimits } from "../../../mod/limits.ts";
import { telemetryLimits } from "../../../mod/ops/limits.ts";
import { Histogram } from "../../../mod/ops/stats/mod.ts";
import { Telemetry, type TelemetryOptions } from "../../../mod/ops/telemetry/mod.ts";
import { freePort } from "../../support/ports.ts";
import { pause, until } from "../../support/waiting.ts";
import { attributesOf, OtlpCollector } from "../support/otlp_collector.ts";

const ok: Outcome = { ok: true, value: "1", logLines: [] };

function ended(changes: Partial<RunEnd> = {}): RunEnd {
  const call = { udfPath: "notes:add", identity: anonymous };
  return {
    call,
    outcome: ok,
    ms: 10,
    durationMs: 4,
    queuedMs: 2,
    use: null,
    request: 36,
    ts: 7,
    version: null,
    ...changes,
  };
}

function telemetry(endpoint: string, changes: Partial<TelemetryOptions> = {}) {
  const logged: string[] = [];
  const log: Log = (level, message) => void logged.push(`${level} ${message}`);
  const made = new Telemetry({
    endpoint,
    headers: { authorization: "Bearer of-the-collector" },
    sample: 1,
    serviceName: "notes",
    version: "1.2.3",
    signals: ["traces", "metrics", "logs"],
    log,
    ...changes,
  });
  const { exportMs = 0 } = changes;
  return Object.assign(made, {
    logged,
    async [Symbol.asyncDispose]() {
      await Telemetry.prototype[Symbol.asyncDispose].call(made);
      // If an export reached its deadline, the package clears its timers when they are due. They would count as leaks.
      await pause(exportMs);
    },
  });
}

/** Export deadline below the delay of the package's first retry (1 s, less a fifth), so that a refused export ends at once. */
const NO_RETRY_MS = 700;

/** Exports spans one at a time until the condition holds. On a slow machine some exports time out. */
async function exportUntil(made: Telemetry, holds: () => boolean): Promise<void> {
  for (let tries = 0; !holds(); tries++) {
    assert.ok(tries < 100, `100 exports did not lead to ${holds}`);
    const { spans } = made.dropped;
    made.start("POST /api/query").end(200);
    await until(() => holds() || made.dropped.spans > spans);
  }
}

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";

Deno.test("[OT3] a valid traceparent header is parsed, and any other is ignored", () => {
  const given = { traceId: TRACE, parentId: PARENT };
  assert.deepEqual(parseTraceparent(`00-${TRACE}-${PARENT}-01`), { ...given, sampled: true });
  assert.deepEqual(parseTraceparent(`00-${TRACE}-${PARENT}-00`), { ...given, sampled: false });
  assert.deepEqual(parseTraceparent(`cc-${TRACE}-${PARENT}-03-more`), { ...given, sampled: true });
  for (
    const header of [
      null,
      "",
      TRACE,
      `ff-${TRACE}-${PARENT}-01`,
      `00-${TRACE}-${PARENT}-01-more`,
      `00-${"0".repeat(32)}-${PARENT}-01`,
      `00-${TRACE}-${"0".repeat(16)}-01`,
      `00-${TRACE.toUpperCase()}-${PARENT}-01`,
    ]
  ) assert.equal(parseTraceparent(header), null, String(header));
});

Deno.test("[OT2] a run is a span whose children are its time in the queue, its run and its commit", async () => {
  await using collector = new OtlpCollector();
  {
    await using made = telemetry(collector.endpoint);
    made.runEnded("mutation", ended());
    const outcome = failed("internal", "x is not a function");
    made.runEnded(
      "query",
      ended({ outcome, call: { udfPath: "notes:list", identity: anonymous }, queuedMs: 0 }),
    );
    made.runEnded("mutation", ended({ call: { udfPath: "_health:commit", identity: anonymous } }));
  }
  const run = await collector.span("mutation notes:add");
  const { "syncline.outcome": outcome, "syncline.request_id": request } = attributesOf(run);
  assert.deepEqual([outcome, request, run.status.code], ["success", "10", 0]);
  const phases = collector.children(run);
  const ms = (from: string, until: string) => Math.round(Number(BigInt(until) - BigInt(from)) / 1e5) / 10;
  assert.deepEqual(
    phases.map((span) => [span.name, ms(span.startTimeUnixNano, span.endTimeUnixNano)]),
    [["queue", 2], ["run", 4], ["commit", 4]],
  );
  assert.equal(phases[0]?.startTimeUnixNano, run.startTimeUnixNano);
  assert.equal(phases[2]?.endTimeUnixNano, run.endTimeUnixNano);
  const failure = await collector.span("query notes:list");
  assert.deepEqual(failure.status, { code: 2, message: "x is not a function" });
  assert.deepEqual(collector.children(failure), []);
  // The service's own work is not exported.
  assert.equal(collector.spans.length, 5);
  assert.equal(collector.resources[0]?.["service.name"], "notes");
  assert.equal(collector.requestHeaders[0]?.get("authorization"), "Bearer of-the-collector");
});

Deno.test("[OT4] a share of the traces is exported, unless the client decides", async () => {
  await using collector = new OtlpCollector();
  {
    await using made = telemetry(collector.endpoint, { sample: 0 });
    made.start("POST /api/query").end(200);
    made.start("POST /api/query", `00-${TRACE}-${PARENT}-00`).end(200);
    made.runEnded("query", ended());
    made.start("POST /api/mutation", `00-${TRACE}-${PARENT}-01`).end(503);
  }
  const [span, ...others] = collector.spans;
  assert.deepEqual(others, []);
  assert.deepEqual([span?.traceId, span?.parentSpanId, span?.kind], [TRACE, PARENT, 2]);
  assert.deepEqual(span?.status, { code: 2, message: "HTTP 503" });
});

Deno.test("[OT5] metrics keep their names, labels and buckets", async () => {
  await using collector = new OtlpCollector();
  await using made = telemetry(collector.endpoint);
  const values = new Histogram([1, 5]);
  for (const value of [0.5, 2, 3, 9]) values.add(value);
  const labels = { kind: "query" };
  await made.exportMetrics(() =>
    Promise.resolve([
      { type: "counter", name: "runs_total", help: "Runs", samples: [{ labels, value: 4 }] },
      { type: "gauge", name: "sockets", help: "Sockets", samples: [{ value: 2 }] },
      { type: "gauge", name: "unknown", help: "Unknown", samples: [] },
      { type: "histogram", name: "seconds", help: "Seconds", series: [{ labels, values }] },
    ])
  );
  const [runs, sockets, seconds, ...others] = collector.metrics;
  assert.deepEqual(others, []);
  assert.deepEqual([runs?.name, runs?.description, runs?.sum?.isMonotonic], ["runs_total", "Runs", true]);
  assert.equal(runs?.sum?.aggregationTemporality, 2);
  const [point] = runs?.sum?.dataPoints ?? [];
  assert.deepEqual([point && attributesOf(point), point?.asDouble], [labels, 4]);
  assert.equal(sockets?.gauge?.dataPoints[0]?.asDouble, 2);
  const [bucket] = seconds?.histogram?.dataPoints ?? [];
  assert.deepEqual([bucket?.explicitBounds, bucket?.bucketCounts], [[1, 5], [1, 2, 1]]);
  assert.deepEqual([bucket?.count, bucket?.sum], [4, 14.5]);
});

Deno.test("[OT6] a collector that is down is reported once, and spans over the limit are dropped", async () => {
  const port = await freePort();
  const made = telemetry(`http://127.0.0.1:${port}`);
  const { queuedMax } = telemetryLimits;
  for (let i = 0; i < queuedMax + 100; i++) made.start("POST /api/query").end(200);
  assert.deepEqual(made.dropped, { spans: 100, logRecords: 0 });
  // The pending exports end within the timeout of a single one, and exports of metrics fail in the meantime.
  const begun = performance.now();
  await made.exportMetrics(() => Promise.resolve([]));
  assert.deepEqual(made.logged, ["warn Cannot export telemetry"]);
  await made.exportMetrics(() => Promise.reject(new Error("unreadable")));
  assert.deepEqual(made.logged, ["warn Cannot export telemetry"]);
  assert.ok(performance.now() - begun < 3 * telemetryLimits.exportMs);
  await using collector = new OtlpCollector(port);
  await made.exportMetrics(() => Promise.resolve([]));
  await until(() => made.logged.length > 1);
  // Retries of the other batches, each with its own delay.
  await until(() => collector.spans.length + made.dropped.spans >= queuedMax + 100);
  const received = collector.spans.length;
  made.start("POST /api/query").end(200);
  await until(() => collector.spans.length === received + 1);
  assert.equal(made.logged[1], "info Telemetry is exported again");
  await made[Symbol.asyncDispose]();
  made.start("POST /api/query").end(200);
  assert.ok(made.dropped.spans > 100, "spans after the close are dropped");
});

Deno.test("[OT6] a stop does not wait for a collector that is down", async () => {
  const endpoint = `http://127.0.0.1:${await freePort()}`;
  let shortest = Infinity;
  // On a busy machine, more rounds until one is undisturbed.
  for (let round = 0; round < 10 && shortest >= telemetryLimits.closeMs / 2; round++) {
    const made = telemetry(endpoint);
    made.start("POST /api/query").end(200);
    await made.exportMetrics(() => Promise.resolve([]));
    const startedAt = performance.now();
    await made.lastMetrics(() => Promise.resolve([]));
    await made[Symbol.asyncDispose]();
    shortest = Math.min(shortest, performance.now() - startedAt);
    // Its last attempt.
    await until(() => made.dropped.spans === 1);
  }
  assert.ok(shortest < telemetryLimits.closeMs / 2, `${shortest} ms`);
});

Deno.test("[OT6] a collector that refuses metrics is reported once, and still receives the last spans", async () => {
  await using collector = new OtlpCollector();
  collector.refusedPath = "/v1/metrics";
  const logged: string[] = [];
  {
    await using made = telemetry(collector.endpoint, {
      log: (level, message, fields) => logged.push(`${level} ${message} ${fields?.["signal"]}`),
    });
    const metrics = () => made.exportMetrics(() => Promise.resolve([]));
    await metrics();
    for (let spans = 1; spans <= 2; spans++) {
      made.start("POST /api/query").end(200);
      await until(() => collector.spans.length === spans);
      await metrics();
    }
    made.start("POST /api/query").end(200);
    await made.lastMetrics(() => Promise.resolve([]));
  }
  assert.deepEqual(logged, ["warn Cannot export telemetry metrics"]);
  assert.equal(collector.spans.length, 3);
});

/** A log whose lines can be copied, and that keeps them. */
function forwardedLog(): {
  readonly log: Log;
  readonly logged: string[];
  readonly receivers: Set<LogReceiver>;
} {
  const logged: string[] = [];
  const receivers = new Set<LogReceiver>();
  const write: Log = (level, message, fields = {}) => {
    logged.push(`${level} ${message} ${fields["signal"] ?? ""}`.trim());
    forwardLine(receivers, { at: 1_700_000_000_123, level, message, fields: plainFields(fields) });
  };
  return { log: Object.assign(write, { receivers }), logged, receivers };
}

/** A call that the run of another one makes. */
function nestedCall(by: { readonly trace: CallTrace }, spanId: string, udfPath = "notes:nested") {
  const trace = { ...by.trace, spanId, parentId: by.trace.spanId };
  return { udfPath, identity: anonymous, origin: "server" as const, trace };
}

Deno.test("[OT7] lines of the server and of functions are exported, those of a run with its trace", async () => {
  await using collector = new OtlpCollector();
  const { log, receivers } = forwardedLog();
  const trace = { traceId: TRACE, spanId: PARENT, sampled: false };
  const call = { udfPath: "notes:add", identity: anonymous, trace };
  {
    await using made = telemetry(collector.endpoint, { log });
    const long = "x".repeat(telemetryLimits.logCharsMax + 1);
    log("warn", "Slow disk", { ms: 12, path: long, error: new TypeError("no") });
    const nested: Outcome = { ok: true, value: "1", logLines: ["[WARN] of a nested call"] };
    const outcome: Outcome = { ok: true, value: "1", logLines: ["[INFO] first", ...nested.logLines, "bare"] };
    const inner = nestedCall(call, "c7ad6b7169203331");
    made.runEnded("query", ended({ call: inner, outcome: nested }));
    made.runEnded("action", ended({ call, outcome }));
    made.runEnded("query", ended({ outcome: nested, call: { udfPath: "_health:x", identity: anonymous } }));
  }
  assert.equal(receivers.size, 0, "it is no receiver of the log any more");
  const [line, ...lines] = collector.logs;
  assert.deepEqual([line?.severityText, line?.severityNumber, line?.body.stringValue], [
    "WARN",
    13,
    "Slow disk",
  ]);
  assert.deepEqual([line?.timeUnixNano, line?.traceId], ["1700000000123000000", undefined]);
  const { "exception.stacktrace": stack, path, ...fields } = attributesOf(line ?? { attributes: [] });
  assert.deepEqual(fields, { ms: 12, "exception.message": "TypeError: no" });
  assert.equal(String(path).length, telemetryLimits.logCharsMax);
  assert.match(String(stack), /telemetry_test/);
  assert.deepEqual(
    lines.map(({ severityText, body, traceId, spanId }) => [severityText, body.stringValue, traceId, spanId]),
    [
      ["WARN", "of a nested call", TRACE, "c7ad6b7169203331"],
      ["INFO", "first", TRACE, PARENT],
      ["INFO", "bare", TRACE, PARENT],
    ],
  );
  assert.deepEqual(lines[1] && attributesOf(lines[1]), {
    "code.function.name": "notes:add",
    "syncline.kind": "action",
    "syncline.request_id": "10",
  });
  assert.deepEqual(collector.spans, [], "the trace is not sampled");
});

Deno.test("[OT7] each run exports its own lines once, also if they equal those of others", async () => {
  await using collector = new OtlpCollector();
  const { log } = forwardedLog();
  const withLines = (logLines: readonly string[]): Outcome => ({ ok: true, value: "1", logLines });
  const root = (spanId: string) => {
    const trace = { traceId: TRACE, spanId, parentId: "0000000000000001", sampled: false };
    return { udfPath: "notes:all", identity: anonymous, origin: "client" as const, trace };
  };
  const many = functionLimits.logLinesMax + 44;
  const span = (n: number) => n.toString(16).padStart(16, "0");
  {
    await using made = telemetry(collector.endpoint, { log, signals: ["logs"] });
    const calls = [root("a".repeat(16)), root("b".repeat(16)), root("c".repeat(16))] as const;
    // More nested runs than the action keeps lines, which have one request id.
    for (let n = 0; n < many; n++) {
      const nested = ended({ call: nestedCall(calls[0], span(n + 16)), outcome: withLines(["[INFO] same"]) });
      made.runEnded("mutation", nested);
    }
    const kept = Array.from({ length: functionLimits.logLinesMax }, () => "[INFO] same");
    made.runEnded("action", ended({ call: calls[0], outcome: withLines([...kept, "[WARN] 44 more"]) }));
    // Unrelated runs with the same request id.
    for (const call of calls.slice(1)) {
      made.runEnded("query", ended({ call, outcome: withLines(["[INFO] same", "[INFO] same"]) }));
    }
    // An action that logs what its nested action logs, whose nested mutation logs it, too.
    const outer = root("d".repeat(16));
    const inner = nestedCall(outer, "e".repeat(16));
    const mutation = nestedCall(inner, "f".repeat(16));
    for (const [i, call] of [mutation, inner, outer].entries()) {
      const logLines = Array.from({ length: i + 1 }, () => "[INFO] same");
      made.runEnded(i === 0 ? "mutation" : "action", ended({ call, outcome: withLines(logLines) }));
    }
  }
  const lines = collector.logs.map(({ spanId, body }) => `${spanId} ${body.stringValue}`);
  assert.deepEqual(lines, [
    ...Array.from({ length: many }, (_, n) => `${span(n + 16)} same`),
    `${"a".repeat(16)} 44 more`,
    ...[..."bbccfed"].map((digit) => `${digit.repeat(16)} same`),
  ]);
});

Deno.test("[OT7] only the chosen signals are exported", async () => {
  await using collector = new OtlpCollector();
  const { log, receivers } = forwardedLog();
  {
    await using made = telemetry(collector.endpoint, { log, signals: ["traces"] });
    assert.equal(receivers.size, 0);
    made.start("POST /api/query").end(200);
    made.runEnded("query", ended({ outcome: { ok: true, value: "1", logLines: ["[INFO] a"] } }));
    await made.exportMetrics(() => Promise.reject(new Error("not read")));
  }
  assert.deepEqual([collector.logs, collector.metrics], [[], []]);
  assert.ok(collector.spans.length > 0);
  {
    await using made = telemetry(collector.endpoint, { log, signals: ["logs"] });
    made.start("POST /api/query").end(200);
    log("info", "Started");
  }
  assert.deepEqual(collector.logs.map(({ body }) => body.stringValue), ["Started"]);
});

Deno.test("[OT6] log records over the limits are dropped and counted", async () => {
  const { log } = forwardedLog();
  const made = telemetry(`http://127.0.0.1:${await freePort()}`, { log, exportMs: NO_RETRY_MS });
  const { queuedMax, logCharsMax, queuedLogCharsMax } = telemetryLimits;
  for (let i = 0; i < queuedMax + 5; i++) log("info", "A line");
  assert.deepEqual(made.dropped, { spans: 0, logRecords: 5 });
  await made[Symbol.asyncDispose]();
  await until(() => made.dropped.logRecords === queuedMax + 5);
  const large = telemetry(`http://127.0.0.1:${await freePort()}`, { log, exportMs: NO_RETRY_MS });
  const lines = Math.ceil(queuedLogCharsMax / logCharsMax);
  assert.ok(lines < queuedMax / 2);
  for (let i = 0; i < 2 * lines; i++) log("info", "x".repeat(logCharsMax));
  assert.ok(large.dropped.logRecords >= lines);
  await large[Symbol.asyncDispose]();
  await until(() => large.dropped.logRecords === 2 * lines);
});

Deno.test("[OT6] an export ends at its deadline, also while the collector sends bytes", async () => {
  await using collector = new OtlpCollector();
  collector.endlessPath = "/v1/traces";
  const { log, logged } = forwardedLog();
  await using made = telemetry(collector.endpoint, { log, exportMs: 300 });
  made.start("POST /api/query").end(200);
  await until(() => made.dropped.spans === 1);
  assert.deepEqual(logged, ["warn Cannot export telemetry traces"]);
  await until(() => collector.ended === 1, { what: "the connection is closed" });
  // The next export uses a new connection.
  collector.endlessPath = null;
  await exportUntil(made, () => collector.spans.length > 0);
  await until(() => logged.length === 2);
  // A signal without new items does not hide that a collector that was silent works again.
  collector.endlessPath = "/v1/traces";
  const { spans } = made.dropped;
  made.start("POST /api/query").end(200);
  await until(() => made.dropped.spans === spans + 1);
  await until(async () => {
    await made.exportMetrics(() => Promise.resolve([]));
    return logged.length === 4;
  });
  const again = ["warn Cannot export telemetry traces", "info Telemetry is exported again"];
  assert.deepEqual(logged, [...again, ...again]);
});

Deno.test("[OT6] a signal whose connections are reset while another one works is reported once", async () => {
  const collector = { resets: true };
  const server = createServer((request, response) => {
    const isReset = collector.resets && request.url === "/v1/traces";
    if (isReset) request.socket.destroy();
    else request.resume().on("end", () => response.end("{}"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  await using _ends = {
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
  const { port } = server.address() as AddressInfo;
  const ROUNDS = 10;
  for (let round = 1; collector.resets; round++) {
    const { log, logged } = forwardedLog();
    await using made = telemetry(`http://127.0.0.1:${port}`, {
      log,
      exportMs: NO_RETRY_MS,
      signals: ["traces", "metrics"],
    });
    const metrics = () => made.exportMetrics(() => Promise.resolve([]));
    await metrics();
    for (let spans = 1; spans <= 3; spans++) {
      made.start("POST /api/query").end(200);
      await until(() => made.dropped.spans === spans);
      await metrics();
    }
    const isUndisturbed = logged.join() === "warn Cannot export telemetry traces";
    // On a busy machine exports of metrics may time out, too. Then another round.
    if (!isUndisturbed && round < ROUNDS) continue;
    assert.deepEqual(logged, ["warn Cannot export telemetry traces"]);
    collector.resets = false;
    await exportUntil(made, () => logged.length === 2);
    assert.equal(logged[1], "info Telemetry is exported again");
  }
});

Deno.test("[OT6] a signal without new items does not hide that the collector works or fails again", async () => {
  const port = await freePort();
  const { log, logged } = forwardedLog();
  await using made = telemetry(`http://127.0.0.1:${port}`, { log, exportMs: NO_RETRY_MS });
  const metrics = () => made.exportMetrics(() => Promise.resolve([]));
  made.start("POST /api/query").end(200);
  await until(() => logged.length === 1);
  assert.match(logged[0] ?? "", /^warn Cannot export telemetry/);
  await until(() => made.dropped.spans === 1);
  {
    await using _collector = new OtlpCollector(port);
    // On a busy machine, more exports until one ends in time.
    await until(() => metrics().then(() => logged.length > 1));
    assert.deepEqual(logged.slice(1), ["info Telemetry is exported again"]);
  }
  await metrics();
  assert.deepEqual(logged.slice(2, 3), ["warn Cannot export telemetry metrics"]);
});
