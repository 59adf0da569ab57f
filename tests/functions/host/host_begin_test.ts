/** The isolates with which a host starts. */
import assert from "node:assert/strict";
import { IsolateHost } from "../../../mod/functions/host/host.ts";
import type { StartResult } from "../../../mod/functions/host/process/isolate.ts";
import type { IsolateRole } from "../../../mod/functions/wire/messages.ts";
import { FakeClock } from "../../support/fake_clock.ts";
import { FakeIsolate, FakeStarter } from "./support/fake_isolate.ts";

/** Isolates that answer when the test lets them. */
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

  ready(at: number): void {
    const { role, answer } = this.asked[at] ?? assert.fail(`Nothing was started as number ${at}`);
    const isolate = new FakeIsolate(role, { type: "Ready", functions: [], ts: 7, lastGroup: null });
    answer({ ok: true, isolate });
  }
}

Deno.test("a host begins with its writer only", async () => {
  const starter = new HeldStarter();
  await using host = new IsolateHost({
    starter,
    clock: new FakeClock(),
    log: () => {},
    batchPrefix: "test",
    cores: 1,
  });
  const begun = host.begin();
  await Promise.resolve();
  assert.equal(starter.roles, "writer");
  starter.ready(0);
  await begun;
  assert.equal(starter.roles, "writer");
  assert.equal(host.ts, 7);
});
