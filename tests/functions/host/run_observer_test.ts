import assert from "node:assert/strict";
import { steadyClock } from "../../../mod/kit/clock.ts";
import { endingOf, type RunEnd, type RunKind } from "../../../mod/functions/host/run_observer.ts";
import { writerOf } from "../../support/processes/process_tree.ts";
import { RealHost } from "./support/real_host.ts";
import { call } from "./support/writer_world.ts";

const files = {
  "runs.ts": `
import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
export const change = untypedMutation({ handler: () => 1 });
export const endless = untypedMutation({ handler: () => { for (;;); } });
export const slow = untypedQuery({ handler: () => { for (;;); } });
export const ask = untypedQuery({ handler: () => 1 });
export const inner = untypedAction({ handler: () => 1 });
export const outer = untypedAction({ handler: (ctx) => ctx.runAction("runs:inner", {}) });
`,
};

class Observed {
  readonly runs: string[] = [];
  readonly ms: Record<string, number> = {};
  readonly groups: number[] = [];

  runEnded(kind: RunKind, { outcome, ms }: RunEnd): void {
    const run = `${kind} ${endingOf(outcome)}`;
    this.runs.push(run);
    this.ms[run] = ms;
  }

  groupCommitted(calls: number): void {
    this.groups.push(calls);
  }
}

Deno.test("every run is reported once with its time, recorded answers are not", async () => {
  const observer = new Observed();
  // Calls that end have five seconds on a busy machine.
  const hurry = 4;
  const timeouts = { mutationMs: 20_000, queryMs: 20_000 };
  await using real = await RealHost.start(files, { observer, hurry, timeouts });
  const replay = { sessionId: crypto.randomUUID(), requestId: 1 };
  const started = steadyClock.now();
  await Promise.all([1, 2, 3].map(() => real.host.mutate(call("runs:change"))));
  const late = { ...call("runs:endless"), replay };
  const { outcome } = await real.host.mutate(late);
  assert.equal(outcome.ok, false);
  assert.equal((await real.host.mutate(late)).replayed, true);
  await real.query("runs:ask");
  await real.query("runs:slow");
  await real.host.act(call("runs:outer"));
  const took = (steadyClock.now() - started) * hurry;
  assert.deepEqual(observer.runs, [
    ...Array<string>(3).fill("mutation success"),
    "mutation timeout",
    "query success",
    "query timeout",
    "action success",
    "action success",
  ]);
  assert.ok((observer.ms["mutation timeout"] ?? 0) >= timeouts.mutationMs);
  assert.equal(observer.ms["query timeout"], timeouts.queryMs);
  for (const [run, ms] of Object.entries(observer.ms)) assert.ok(ms > 0 && ms <= took, `${run}: ${ms}`);
  // The last two are the record of the failure and the answer to its duplicate.
  assert.equal(observer.groups.reduce((sum, calls) => sum + calls, 0), 5);
});

Deno.test("a query of the service that runs in the writer is reported as a query", async () => {
  const observer = new Observed();
  await using real = await RealHost.start(files, { observer });
  const { outcome } = await real.host.mutate({ ...call("runs:ask"), origin: "system" });
  assert.deepEqual([outcome.ok, observer.runs], [true, ["query success"]]);
  assert.equal(real.host.isolates.roles.reader.running, 0);
});

Deno.test("the statistics show running and lost isolates and their memory", async () => {
  await using real = await RealHost.start(files);
  const { isolates } = real.host;
  assert.equal(isolates.roles.reader.running, 0);
  await real.run("runs:ask");
  assert.deepEqual(isolates.roles, {
    writer: { running: 1, starts: 1, lost: 0 },
    reader: { running: 1, starts: 1, lost: 0 },
    runner: { running: 0, starts: 0, lost: 0 },
  });
  Deno.kill(await writerOf(Deno.pid), "SIGKILL");
  await real.mutate("runs:change");
  assert.deepEqual(isolates.roles.writer, { running: 1, starts: 2, lost: 1 });
  await real.host.swaps.reload();
  const { writer, reader } = isolates.roles;
  assert.deepEqual([writer.starts, writer.lost, reader.lost], [3, 1, 0], "a stopped isolate is not lost");
  const asked: number[][] = [];
  const memory = await isolates.memory((pids) => {
    asked.push([...pids]);
    return Promise.resolve(new Map(pids.slice(0, 1).map((pid) => [pid, 7])));
  });
  assert.equal(asked[0]?.length, writer.running + reader.running);
  assert.equal([...memory.values()].reduce((sum, bytes) => sum + bytes, 0), 7);
  assert.deepEqual([...memory.keys()], ["writer", "reader", "runner"]);
});
