/** Location probes: failed steps, cleanup and timeouts. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { type LocationProbe, probeLocation } from "../../mod/kit/locations/location_probe.ts";
import { openTarget, triedTarget } from "../../mod/ops/replication/mod.ts";
import { LocalBlobs, testBlobStore } from "../../mod/storage/mod.ts";

const STEP_MS = 20_000;

function memory(
  faults: Partial<LocationProbe> = {},
): { readonly place: LocationProbe; readonly kept: () => unknown } {
  let kept: Uint8Array | null = null;
  return {
    kept: () => kept,
    place: {
      place: "memory",
      list: () => Promise.resolve(),
      write: (bytes) => Promise.resolve(void (kept = bytes)),
      read: () => Promise.resolve(kept),
      remove: () => Promise.resolve(void (kept = null)),
      ...faults,
    },
  };
}

Deno.test("[DA10] a usable location passes every step, and nothing is left there", async () => {
  const { place, kept } = memory();
  const steps = ["list", "write", "read", "remove"].map((step) => ({ step, error: null }));
  assert.deepEqual(await probeLocation(place, { stepMs: STEP_MS }), { place: "memory", steps });
  assert.equal(kept(), null);
});

Deno.test("[DA10] the failed step is the last one and has its reason; the object is removed", async () => {
  const refused = () => Promise.reject(new Error("AccessDenied"));
  for (
    const [faults, step, error] of [
      [{ list: refused }, "list", /^AccessDenied$/],
      [{ write: refused }, "write", /^AccessDenied$/],
      [{ read: refused }, "read", /^AccessDenied$/],
      [{ read: () => Promise.resolve(null) }, "read", /is not there/],
      [{ read: () => Promise.resolve(new Uint8Array(64)) }, "read", /something else/],
      [{ remove: refused }, "remove", /^AccessDenied$/],
    ] as const
  ) {
    const { place, kept } = memory(faults);
    const last = (await probeLocation(place, { stepMs: STEP_MS })).steps.at(-1);
    assert.equal(last?.step, step);
    assert.match(last?.error ?? "", error);
    if (step !== "remove") assert.equal(kept(), null);
  }
});

Deno.test("[DA10] a failed removal is repeated", async () => {
  let removals = 0;
  const { place, kept } = memory();
  const remove = () => removals++ === 0 ? Promise.reject(new Error("the answer was lost")) : place.remove();
  const { steps } = await probeLocation({ ...place, remove }, { stepMs: STEP_MS });
  assert.deepEqual(steps.at(-1), { step: "remove", error: "the answer was lost" });
  assert.equal(kept(), null);
});

Deno.test("[DA10] a location that does not answer times out", async () => {
  const never = Promise.withResolvers<void>();
  const removed = Promise.withResolvers<void>();
  const { place } = memory({
    write: () => never.promise,
    remove: () => Promise.resolve(removed.resolve()),
  });
  const { steps } = await probeLocation(place, { stepMs: 5 });
  assert.match(steps.at(-1)?.error ?? "", /no answer within/);
  // A write that completes late is removed as well.
  never.resolve();
  await removed.promise;
});

Deno.test("[DA10] folders of files and of a replica are tested as they are used, and left unchanged", async () => {
  const folder = await Deno.makeTempDir();
  await using store = await LocalBlobs.open(join(folder, "storage"));
  const files = await probeLocation(testBlobStore(store, { place: "files" }), { stepMs: STEP_MS });
  assert.deepEqual(files.steps.map(({ error }) => error), [null, null, null, null]);
  assert.deepEqual(await Array.fromAsync(store.list()), []);

  const at = { kind: "folder", path: join(folder, "replica") } as const;
  const missing = await probeLocation(triedTarget(at), { stepMs: STEP_MS });
  assert.match(missing.steps.at(-1)?.error ?? "", /is not there/);
  await using target = await openTarget(at, { make: true });
  const replica = await probeLocation(triedTarget(at), { stepMs: STEP_MS });
  assert.deepEqual(replica.steps.map(({ error }) => error), [null, null, null, null]);
  assert.deepEqual(await Array.fromAsync(target.list("tried/")), []);
  await Deno.remove(folder, { recursive: true });
});
