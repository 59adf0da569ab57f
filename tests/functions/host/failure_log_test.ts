/** Failed runs in the server's log: which, with what, and how many. */
import assert from "node:assert/strict";
import { FailureLog } from "../../../mod/functions/host/failure_log.ts";
import { failed, type Outcome } from "../../../mod/functions/outcome.ts";
import { failureLogLimits } from "../../../mod/functions/limits.ts";
import { functionLimits } from "../../../mod/limits.ts";
import { call } from "./support/writer_world.ts";
import { FakeClock } from "../../support/fake_clock.ts";
import { RealHost } from "./support/real_host.ts";

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: Record<string, unknown>;
}

function world() {
  const lines: Line[] = [];
  const clock = new FakeClock();
  const failures = new FailureLog({
    log: (level, message, fields = {}) => lines.push({ level, message, fields }),
    clock,
  });
  return { lines, clock, failures };
}

const fault = (message: string): Outcome => failed("internal", message);

Deno.test("only internal errors are logged, in bounded texts", () => {
  const { lines, failures } = world();
  failures.note("a:b", { ok: true, value: "1", logLines: [] });
  for (const kind of ["user", "args", "unknown_function"] as const) failures.note("a:b", failed(kind, "x"));
  assert.deepEqual(lines, []);
  failures.note("a:b", {
    ok: false,
    error: { kind: "internal", message: "x".repeat(1e6), data: null, stack: "y".repeat(1e6) },
    logLines: [],
  });
  const { level, message, fields } = lines[0] ?? assert.fail();
  assert.deepEqual([level, message, fields["udfPath"]], ["error", "A function failed", "a:b"]);
  assert.equal(String(fields["message"]).length, functionLimits.errorCharsMax);
  assert.equal(String(fields["stack"]).length, functionLimits.errorCharsMax);
});

Deno.test("a function that fails all the time neither floods the log nor hides another one", async () => {
  const { lines, clock, failures } = world();
  for (let i = 0; i < 1_000; i++) failures.note("a:bad", fault(`${i}`));
  failures.note("a:other", fault("rare"));
  const { burst } = failureLogLimits.ofFunction;
  assert.deepEqual(lines.map(({ fields }) => fields["message"]), ["0", "1", "2", "3", "4", "rare"]);
  await clock.advance(failureLogLimits.suppressedReportMs);
  assert.deepEqual(lines.at(-1), {
    level: "warn",
    message: "Suppressed log entries of failed functions",
    fields: { count: 1_000 - burst, functions: "a:bad" },
  });
  assert.equal(clock.timers, 0);
  failures.note("a:bad", fault("again"));
  assert.equal(lines.at(-1)?.fields["message"], "again");
});

Deno.test("many failing functions do not flood the log, and the number of omitted ones is logged at the end, too", () => {
  const { lines, clock, failures } = world();
  for (let i = 0; i < 1_000; i++) failures.note(`a:f${i}`, fault("bad"));
  const { burst } = failureLogLimits.ofAll;
  assert.equal(lines.length, burst);
  failures[Symbol.dispose]();
  assert.equal(clock.timers, 0);
  const { fields } = lines.at(-1) ?? assert.fail();
  assert.equal(fields["count"], 1_000 - burst);
  assert.equal(String(fields["functions"]).split(", ").length, failureLogLimits.suppressedNamesMax);
  failures.note("a:late", fault("The server is stopping"));
  assert.equal(lines.length, burst + 1);
});

const files = {
  "bad.ts": `import { untypedAction, untypedMutation, untypedQuery, UserError } from "syncline/server";
import { z } from "zod";
const fail = (what: string): never => {
  throw new RangeError(what + " went wrong");
};
export const read = untypedQuery({ args: {}, handler: () => fail("read") });
export const write = untypedMutation({ args: {}, handler: () => fail("write") });
export const act = untypedAction({ args: {}, handler: () => fail("act") });
export const callsWrite = untypedAction({
  args: {},
  handler: async (ctx) => await ctx.runMutation("bad:write"),
});
export const refused = untypedMutation({
  args: { n: z.number() },
  handler: () => { throw new UserError("no", "Not now"); },
});
`,
};

Deno.test("a failed run of each kind is logged once, with its stack in the author's files", async () => {
  await using it = await RealHost.start(files);
  assert.match(String(await it.mutate("bad:refused", { n: 1 })), /Not now/);
  assert.match(String(await it.mutate("bad:refused", { n: "x" })), /^args/);
  assert.match(String(await it.query("bad:missing")), /^unknown_function/);
  assert.equal(it.logged.length, 0);
  await it.query("bad:read");
  await it.mutate("bad:write");
  await it.act("bad:act");
  const seen = it.logged.splice(0).map((line) => {
    assert.ok(line.startsWith("A function failed "), line);
    return JSON.parse(line.slice("A function failed ".length));
  });
  assert.deepEqual(seen.map(({ udfPath, message }) => [udfPath, message]), [
    ["bad:read", "read went wrong"],
    ["bad:write", "write went wrong"],
    ["bad:act", "act went wrong"],
  ]);
  for (const [i, { stack }] of seen.entries()) {
    assert.match(stack, new RegExp(`at fail \\(bad\\.ts:4:9\\)\\n\\s+at .*bad\\.ts:${6 + i}:`));
  }
  await it.act("bad:callsWrite");
  const [inner = "", outer = "", ...more] = it.logged;
  assert.deepEqual(more, []);
  assert.match(inner, /"bad:write"/);
  assert.match(outer, /"bad:callsWrite".*bad\.ts:4:9.*bad\.ts:7:.*bad\.ts:11:/);
});

Deno.test("a recorded failure that is answered again is not logged again", async () => {
  await using it = await RealHost.start(files);
  const replay = { sessionId: crypto.randomUUID(), requestId: 1 };
  for (let i = 0; i < 3; i++) await it.host.mutate({ ...call("bad:write"), replay });
  assert.equal(it.logged.length, 1);
});
