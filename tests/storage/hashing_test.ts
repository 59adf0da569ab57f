/** Hashes on a thread of its own: right for all at once, and an error, not a wrong one, when the thread ends. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { storageLimits } from "../../mod/limits.ts";
import { ContentHashes } from "../../mod/storage/hashing/content_hashes.ts";
import { HashThread } from "../../mod/storage/hashing/hash_thread.ts";

const { hashSlotBytes, hashSlots, hashThreadBytesMin } = storageLimits;

Deno.test("UP1 many hashes at once are each that of their own bytes", async () => {
  using hashes = new ContentHashes();
  // On the thread and beside it, in chunks below, at and above the size of a slot, more than there are slots.
  const sizes = [0, 1, 65_536, hashSlotBytes, hashSlotBytes + 1, 3 * hashSlotBytes - 7];
  await Promise.all(Array.from({ length: 2 * hashSlots }, async (_, number) => {
    using hash = hashes.begin(number % 4 === 0 ? null : hashThreadBytesMin + number);
    const expected = createHash("sha256");
    for (const size of [...sizes, ...sizes]) {
      const chunk = randomBytes(size + (size > 1 ? number : 0));
      expected.update(chunk);
      await hash.update(chunk);
      // The chunk is the caller's again.
      chunk.fill(0);
    }
    assert.equal(await hash.digest(), expected.digest("hex"), `hash ${number}`);
  }));
});

Deno.test("UP1 a hash that is given up leaves the others alone", async () => {
  using hashes = new ContentHashes();
  const given = hashes.begin(hashThreadBytesMin);
  using kept = hashes.begin(hashThreadBytesMin);
  await given.update(new Uint8Array(10));
  await kept.update(new Uint8Array(20));
  given[Symbol.dispose]();
  assert.equal(await kept.digest(), createHash("sha256").update(new Uint8Array(20)).digest("hex"));
});

Deno.test("UP1 an empty file has a hash too", async () => {
  using thread = new HashThread();
  using hash = thread.begin();
  assert.equal(await hash.digest(), createHash("sha256").digest("hex"));
});

Deno.test("UP13 when the thread ends, hashes under way fail, and the next ones have a new thread", async () => {
  const thread = new HashThread();
  const hash = thread.begin();
  await hash.update(new Uint8Array(hashSlotBytes));
  const digest = assert.rejects(hash.digest(), /has ended/);
  // More than there is room for, with nobody left to make room.
  const update = assert.rejects(hash.update(new Uint8Array(2 * hashSlots * hashSlotBytes)), /has ended/);
  thread[Symbol.dispose]();
  await Promise.all([digest, update]);
  assert.ok(thread.failed);
  await assert.rejects(thread.begin().digest(), /has ended/);
});

Deno.test("UP13 the thread ends when it had nothing to do, and begins again", async () => {
  using hashes = new ContentHashes({ idleMs: 1 });
  for (let round = 0; round < 3; round++) {
    using hash = hashes.begin(hashThreadBytesMin);
    await hash.update(new Uint8Array(round));
    assert.equal(
      await hash.digest(),
      createHash("sha256").update(new Uint8Array(round)).digest("hex"),
    );
    hash[Symbol.dispose]();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
});
