/** Loads of code that fail with an unexpected error. */
import assert from "node:assert/strict";
import { IsolateHost } from "../../../mod/functions/host/host.ts";
import { FakeClock } from "../../support/fake_clock.ts";
import { FakeStarter } from "./support/fake_isolate.ts";

Deno.test("a load whose writer fails to start with an error releases queries and other processes", async () => {
  const starter = new FakeStarter();
  const clock = new FakeClock();
  await using host = new IsolateHost({ starter, clock, log: () => {}, batchPrefix: "test", cores: 1 });
  await host.begin();
  const calls: unknown[] = [];
  host.swaps.setPeers({
    hold: () => {
      calls.push("hold");
      return Promise.resolve();
    },
    release: (app) => void calls.push(["release", app]),
  });
  starter.onStart = () => {
    throw new Error("no space");
  };
  await assert.rejects(host.swaps.reload(), /no space/);
  assert.deepEqual(calls, ["hold", ["release", null]]);
  assert.ok(host.readers.free);
  starter.onStart = null;
  assert.deepEqual(await host.swaps.reload(), { ok: true });
});
