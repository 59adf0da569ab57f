/** How a host begins on a database that another server has worked with until now, over fake isolates. */
import assert from "node:assert/strict";
import { IsolateHost } from "../../../mod/functions/host/host.ts";
import type { Ready, StartResult } from "../../../mod/functions/host/process/isolate.ts";
import type { IsolateRole } from "../../../mod/functions/wire/messages.ts";
import { FakeClock } from "../../support/fake_clock.ts";
import { until } from "../../support/waiting.ts";
import { FakeIsolate, FakeStarter } from "./support/fake_isolate.ts";

/** Isolates that each answer when the test says so. */
class HeldStarter extends FakeStarter {
  readonly asked: { readonly role: IsolateRole; readonly answer: (result: StartResult) => void }[] = [];

  override start(role: IsolateRole): Promise<StartResult> {
    const { promise, resolve } = Promise.withResolvers<StartResult>();
    this.asked.push({ role, answer: resolve });
    return promise;
  }

  get roles(): string {
    return this.asked.map(({ role }) => role).join(" ");
  }

  /** The number of the first one of a role. */
  at(role: IsolateRole): number {
    return this.asked.findIndex((asked) => asked.role === role);
  }

  ready(at: number, said: Partial<Ready> = {}): FakeIsolate {
    const { role, answer } = this.asked[at] ?? assert.fail(`Nothing was started as number ${at}`);
    const isolate = new FakeIsolate(role, { type: "Ready", functions: [], ts: 7, lastGroup: null, ...said });
    answer({ ok: true, isolate });
    return isolate;
  }

  breaks(at: number): void {
    this.asked[at]?.answer({ ok: false, broken: true, message: "There is no table" });
  }
}

function begun({ continues }: { readonly continues: boolean }) {
  const starter = new HeldStarter();
  const host = IsolateHost.startWith({
    starter,
    clock: new FakeClock(),
    log: () => {},
    batchPrefix: "test",
    cores: 1,
    continues,
  });
  return { starter, host };
}

Deno.test("a reader starts beside the writer if the database continues as it was", async () => {
  const { starter, host } = begun({ continues: true });
  assert.deepEqual(starter.roles.split(" ").sort(), ["reader", "writer"]);
  starter.ready(starter.at("reader"));
  starter.ready(starter.at("writer"));
  await using served = await host;
  assert.equal(served.ts, 7);
  assert.equal(starter.asked.length, 2);
});

Deno.test("a reader that knows tables as they were before the writer changed them is replaced", async () => {
  const { starter, host } = begun({ continues: true });
  const old = starter.ready(starter.at("reader"));
  starter.ready(starter.at("writer"), { changed: true });
  await until(() => starter.asked.length === 3);
  assert.equal(starter.asked[2]?.role, "reader");
  starter.ready(2);
  await using _served = await host;
  assert.ok(old.dead);
});

Deno.test("a reader for which tables are missing begins again behind the writer", async () => {
  const { starter, host } = begun({ continues: true });
  starter.breaks(starter.at("reader"));
  starter.ready(starter.at("writer"), { changed: true });
  await until(() => starter.asked.length === 3);
  starter.ready(2);
  await using served = await host;
  assert.equal(served.ts, 7);
});

Deno.test("everywhere else a reader begins when the writer has made the database fit", async () => {
  const { starter, host } = begun({ continues: false });
  await Promise.resolve();
  assert.equal(starter.roles, "writer");
  starter.ready(0);
  await until(() => starter.asked.length === 2);
  assert.equal(starter.asked[1]?.role, "reader");
  starter.ready(1);
  await using _served = await host;
});
