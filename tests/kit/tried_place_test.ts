/** Places tried out: which step failed, what was cleaned up, and who is not waited for. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { type TriedPlace, tryPlace } from "../../mod/kit/places/tried_place.ts";
import { openTarget, triedTarget } from "../../mod/ops/replication/mod.ts";
import { LocalBlobs, triedBlobs } from "../../mod/storage/mod.ts";

const STEP_MS = 20_000;

function memory(
  faults: Partial<TriedPlace> = {},
): { readonly place: TriedPlace; readonly kept: () => unknown } {
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

Deno.test("[DA10] a place that can be used passes every step, and nothing stays there", async () => {
  const { place, kept } = memory();
  const steps = ["list", "write", "read", "remove"].map((step) => ({ step, error: null }));
  assert.deepEqual(await tryPlace(place, { stepMs: STEP_MS }), { place: "memory", steps });
  assert.equal(kept(), null);
});

Deno.test("[DA10] the step that failed is the last one, with its reason; what was written is removed", async () => {
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
    const last = (await tryPlace(place, { stepMs: STEP_MS })).steps.at(-1);
    assert.equal(last?.step, step);
    assert.match(last?.error ?? "", error);
    if (step !== "remove") assert.equal(kept(), null);
  }
});

Deno.test("[DA10] what could not be removed at once is removed again", async () => {
  let removals = 0;
  const { place, kept } = memory();
  const remove = () => removals++ === 0 ? Promise.reject(new Error("the answer was lost")) : place.remove();
  const { steps } = await tryPlace({ ...place, remove }, { stepMs: STEP_MS });
  assert.deepEqual(steps.at(-1), { step: "remove", error: "the answer was lost" });
  assert.equal(kept(), null);
});

Deno.test("[DA10] a place that does not answer is given up", async () => {
  const never = Promise.withResolvers<void>();
  const removed = Promise.withResolvers<void>();
  const { place } = memory({
    write: () => never.promise,
    remove: () => Promise.resolve(removed.resolve()),
  });
  const { steps } = await tryPlace(place, { stepMs: 5 });
  assert.match(steps.at(-1)?.error ?? "", /no answer within/);
  // What comes late all the same is not left there.
  never.resolve();
  await removed.promise;
});

Deno.test("[DA10] files and a replica in folders are tried as they are used, and left as they were", async () => {
  const folder = await Deno.makeTempDir();
  await using store = await LocalBlobs.open(join(folder, "storage"));
  const files = await tryPlace(triedBlobs(store, { place: "files" }), { stepMs: STEP_MS });
  assert.deepEqual(files.steps.map(({ error }) => error), [null, null, null, null]);
  assert.deepEqual(await Array.fromAsync(store.list()), []);

  const at = { kind: "folder", path: join(folder, "replica") } as const;
  const missing = await tryPlace(triedTarget(at), { stepMs: STEP_MS });
  assert.match(missing.steps.at(-1)?.error ?? "", /is not there/);
  await using target = await openTarget(at, { make: true });
  const replica = await tryPlace(triedTarget(at), { stepMs: STEP_MS });
  assert.deepEqual(replica.steps.map(({ error }) => error), [null, null, null, null]);
  assert.deepEqual(await Array.fromAsync(target.list("tried/")), []);
  await Deno.remove(folder, { recursive: true });
});
