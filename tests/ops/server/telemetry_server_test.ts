/** Traces, metrics and log lines that a server exports to a collector. */
import assert from "node:assert/strict";
import { telemetrySignals } from "../../../mod/ops/limits.ts";
import { startTestServer } from "../../auth/server/test_server.ts";
import { attributesOf, OtlpCollector } from "../support/otlp_collector.ts";

const functions = {
  "schema.ts": `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({ notes: defineTable({ text: z.string() }) });
`,
  "notes.ts": `
import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const add = untypedMutation({ args: { text: z.string() }, handler: (ctx, { text }) => {
  ctx.log.warn("adds", { text });
  return ctx.db.insert("notes", { text });
} });
export const fail = untypedQuery({ args: {}, handler: () => { throw new TypeError("of the app"); } });
export const list = untypedQuery({ args: {}, handler: async (ctx) => (await ctx.db.query("notes").collect()).length });
export const inner = untypedAction({ args: {}, handler: (ctx) => ctx.runQuery("notes:list", {}) });
export const act = untypedAction({ args: {}, handler: async (ctx) => {
  await ctx.runMutation("notes:add", { text: "of the action" });
  return await ctx.runAction("notes:inner", {});
} });
`,
  "http.ts": `
import { httpAction, httpRouter } from "syncline/server";
const http = httpRouter();
http.route({ path: "/hook", method: "POST", handler: httpAction(() => new Response(null, { status: 204 })) });
export default http;
`,
};

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";
const traced = { headers: { traceparent: `00-${TRACE}-${PARENT}-01` } };

Deno.test("[OT1] [OT2] [OT3] a call over HTTP, a message and a route are traces down to their nested calls", async () => {
  await using collector = new OtlpCollector();
  const telemetry = { endpoint: collector.endpoint, headers: {}, sample: 1, signals: telemetrySignals };
  {
    await using server = await startTestServer({ functions, config: { telemetry } });
    assert.equal((await server.post("/metrics", {})).status, 404);
    await server.post("/api/action", { path: "notes:act", args: {} }, traced);
    await server.post("/api/query", { path: "notes:fail", args: {} });
    const hook = await fetch(`${server.url}/hook`, { method: "POST", ...traced });
    assert.equal(hook.status, 204);
    await using socket = await server.socket();
    socket.send({ type: "Mutation", requestId: 1, udfPath: "notes:add", args: { text: "of a socket" } });
    await socket.message(({ type }) => type === "MutationResponse");
  }
  // The server exports everything when it stops.
  const request = await collector.span("POST /api/action");
  assert.deepEqual([request.traceId, request.parentSpanId, request.kind], [TRACE, PARENT, 2]);
  assert.equal(attributesOf(request)["http.response.status_code"], 200);
  const named = (of: Parameters<OtlpCollector["children"]>[0]) =>
    collector.children(of).map(({ name }) => name);
  const [act] = collector.children(request);
  assert.equal(act?.name, "action notes:act");
  const calls = named(act).filter((name) => name !== "queue" && name !== "run");
  assert.deepEqual(calls.sort(), ["action notes:inner", "mutation notes:add"]);
  const inner = collector.spans.find(({ name }) => name === "action notes:inner");
  assert.ok(inner !== undefined && named(inner).includes("query notes:list"));

  const route = collector.spans.filter(({ kind, name }) => kind === 2 && name.includes("/hook"));
  assert.deepEqual(route.map(({ traceId, parentSpanId }) => [traceId, parentSpanId]), [[TRACE, PARENT]]);
  assert.equal(collector.children(route[0] ?? request)[0]?.name, "route POST /hook");

  const message = await collector.span("socket mutation");
  assert.notEqual(message.traceId, TRACE);
  assert.equal(message.parentSpanId, undefined);
  const [run] = collector.children(message);
  assert.equal(run?.name, "mutation notes:add");
  assert.ok(run !== undefined && named(run).includes("commit"));
  assert.ok(!collector.spans.some(({ name }) => /^\w+ _/.test(name)), "the service's own functions");

  const lines = collector.logs.filter(({ body }) => body.stringValue.startsWith("adds text="));
  const adds = collector.spans.filter(({ name }) => name === "mutation notes:add");
  assert.deepEqual(
    lines.map(({ traceId, spanId }) => `${traceId} ${spanId}`),
    adds.map(({ traceId, spanId }) => `${traceId} ${spanId}`),
    "each line once, with the span of its run",
  );
  const [failure, ...others] = collector.logs.filter(({ severityText }) => severityText === "ERROR");
  assert.deepEqual([failure?.body.stringValue, others], ["A function failed", []]);
  const { "exception.stacktrace": stack, "syncline.request_id": id, ...failed } = attributesOf(
    failure ?? { attributes: [] },
  );
  assert.deepEqual(failed, { "code.function.name": "notes:fail", "exception.message": "of the app" });
  assert.match(String(stack), /notes\.ts/);
  const failedRun = collector.spans.find(({ name }) => name === "query notes:fail");
  assert.equal(failedRun && attributesOf(failedRun)["syncline.request_id"], id);

  const runs = collector.metrics.find(({ name }) => name === "syncline_function_runs_total");
  const mutations = runs?.sum?.dataPoints.find((point) => {
    const { kind, outcome } = attributesOf(point);
    return kind === "mutation" && outcome === "success";
  });
  assert.ok((mutations?.asDouble ?? 0) >= 2);
  const names = collector.metrics.map(({ name }) => name);
  for (
    const name of ["syncline_sockets", "syncline_telemetry_dropped_spans_total", "syncline_commits_total"]
  ) {
    assert.ok(names.includes(name), name);
  }
});
