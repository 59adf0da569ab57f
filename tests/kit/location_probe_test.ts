/** Location probes: failed steps, cleanup and timeouts. */
import assert from "node:assert/strict";
import { probeLocation } from "../../mod/kit/locations/location_probe.ts";
import { type ObjectStore } from "../../mod/kit/locations/object_store.ts";
import { openStore } from "../../mod/kit/locations/open_store.ts";
import { targetProbe } from "../../mod/ops/replication/mod.ts";
import { blobsProbe, openBlobs } from "../../mod/storage/mod.ts";
import { TempFolder } from "../support/temp_folder.ts";

const STEP_MS = 20_000;

/** Tests a folder in which some operations fail. `kept` returns whether the object is still there. */
async function probed(faults: (store: ObjectStore) => Partial<ObjectStore> = () => ({}), stepMs = STEP_MS) {
  const folder = await Deno.makeTempDir();
  const store = await openStore({ kind: "folder", path: folder });
  const own = faults(store);
  const faulty = new Proxy(store, {
    get: (target, name) => Reflect.get(own, name) ?? Reflect.get(target, name)?.bind?.(target),
  });
  const probe = { place: "a folder", name: "probe", open: () => Promise.resolve(faulty) };
  const report = await probeLocation(probe, { stepMs });
  const kept = await store.head("probe") !== null;
  await Deno.remove(folder, { recursive: true });
  return { ...report, last: report.steps.at(-1), kept };
}

Deno.test("[DA10] a usable location passes every step, and no file remains", async () => {
  const { place, steps, kept } = await probed();
  assert.equal(place, "a folder");
  assert.deepEqual(steps, ["list", "write", "read", "remove"].map((step) => ({ step, error: null })));
  assert.equal(kept, false);
});

Deno.test("[DA10] the failed step is the last one and has its reason; the object is removed", async () => {
  const refused = () => Promise.reject(new Error("AccessDenied"));
  const other = new Blob([new Uint8Array(64)]);
  const faults: readonly (readonly [Partial<ObjectStore>, string, RegExp])[] = [
    [
      {
        list: () =>
          ReadableStream.from(async function* () {
            yield await refused();
          }()),
      },
      "list",
      /^AccessDenied$/,
    ],
    [{ put: refused }, "write", /^AccessDenied$/],
    [{ get: refused }, "read", /^AccessDenied$/],
    [{ get: () => Promise.resolve(null) }, "read", /is missing/],
    [{ get: () => Promise.resolve(other.stream()) }, "read", /other contents/],
    [{ delete: refused }, "remove", /^AccessDenied$/],
  ];
  for (const [fault, step, error] of faults) {
    const { last, kept } = await probed(() => fault);
    assert.equal(last?.step, step);
    assert.match(last?.error ?? "", error);
    assert.equal(kept, step === "remove");
  }
});

Deno.test("[DA10] a failed removal is repeated", async () => {
  let removals = 0;
  const { last, kept } = await probed((store) => ({
    delete: (name) =>
      removals++ === 0 ? Promise.reject(new Error("the answer was lost")) : store.delete(name),
  }));
  assert.deepEqual(last, { step: "remove", error: "the answer was lost" });
  assert.equal(kept, false);
});

Deno.test("[DA10] a location that does not answer times out", async () => {
  const never = Promise.withResolvers<boolean>();
  const removed = Promise.withResolvers<void>();
  const { last } = await probed(() => ({
    // The folder may take longer on a busy machine.
    list: () => ReadableStream.from([]),
    put: () => never.promise,
    delete: () => Promise.resolve(removed.resolve()),
  }), 50);
  assert.equal(last?.step, "write");
  assert.match(last?.error ?? "", /No answer within/);
  // A write that completes late is removed as well.
  never.resolve(true);
  await removed.promise;
});

Deno.test("[DA10] folders of files and of a replica are tested as they are used, and are unchanged afterwards", async () => {
  await using folder = new TempFolder();
  const files = { kind: "folder", path: folder.at("storage") } as const;
  await using store = await openBlobs(files);
  const errors = async (probe: Parameters<typeof probeLocation>[0]) =>
    (await probeLocation(probe, { stepMs: STEP_MS })).steps.map(({ error }) => error);
  assert.deepEqual(await errors(blobsProbe(files)), [null, null, null, null]);
  assert.deepEqual(await Array.fromAsync(store.list()), []);

  const at = { kind: "folder", path: folder.at("replica") } as const;
  assert.match((await errors(targetProbe(at))).at(-1) ?? "", /does not exist/);
  await using target = await openStore(at, { make: true });
  assert.deepEqual(await errors(targetProbe(at)), [null, null, null, null]);
  assert.deepEqual(await Array.fromAsync(target.list("tried/")), []);
});
