/** Search for orphaned files and for references to a file. */
import assert from "node:assert/strict";
import { anonymous } from "../../mod/functions/identity.ts";
import { storageLimits } from "../../mod/storage/limits.ts";
import { startTestStorage, type TestStorage } from "./support/test_storage.ts";

async function ask({ service }: TestStorage, name: string, args: Record<string, unknown> = {}) {
  const outcome = await service.adminActions.get(`_admin/files:${name}`)?.run(args, anonymous);
  assert.ok(outcome?.ok, JSON.stringify(outcome));
  return JSON.parse(outcome.value);
}

Deno.test("[SY28] orphans are reported once a document that references them would exist", async () => {
  await using storage = await startTestStorage();
  const [named, lonely] = [await storage.upload("named"), await storage.upload("lonely")];
  const album = await storage.call("files:name", { id: named });
  const nothing = { fileIds: [], read: 1, more: false };
  assert.deepEqual(await ask(storage, "orphans"), nothing, "they are new");
  storage.clock.now += storageLimits.orphanAgeMs + 1;
  const late = await storage.upload("late");
  assert.deepEqual(await ask(storage, "orphans"), { ...nothing, fileIds: [lonely] });
  assert.deepEqual(await ask(storage, "references", { fileId: named }), {
    references: [{ fileId: named, table: "albums", id: album, field: "cover" }],
    read: 1,
    more: false,
  });
  storage.clock.now += storageLimits.orphanAgeMs + 1;
  assert.deepEqual((await ask(storage, "orphans")).fileIds, [lonely, late]);
  await storage.call("files:name", { id: late });
  assert.deepEqual((await ask(storage, "orphans")).fileIds, [lonely]);
});
