import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { IdleCollection } from "../../mod/kit/processes/idle_collection.ts";

const MB = 1_000_000;

/** A process with 20 MB after a collection. */
function idleProcess() {
  const state = { processorMs: 500, heapBytes: 40 * MB, collections: 0, trims: 0 };
  const collection = new IdleCollection({
    processorMs: () => state.processorMs,
    heapBytes: () => state.heapBytes,
    collect() {
      state.collections++;
      state.processorMs += 100;
      state.heapBytes = 20 * MB;
    },
    trim: () => state.trims++,
  });
  /** Checks until the process has been idle long enough. */
  const idle = () => {
    for (let check = 0; check < 5; check++) collection.check();
  };
  return { state, collection, idle };
}

Deno.test("the garbage of a process is collected once it is idle", () => {
  const { state, collection } = idleProcess();
  state.processorMs += 300;
  collection.check();
  assert.equal(state.collections, 0, "it was busy");
  state.processorMs += 10;
  collection.check();
  assert.equal(state.collections, 1);
});

Deno.test("the garbage of an idle process is collected again only after its heap has grown", () => {
  const { state, collection, idle } = idleProcess();
  collection.check();
  state.heapBytes = 24 * MB;
  idle();
  assert.equal(state.collections, 1);
  state.heapBytes = 30 * MB;
  collection.check();
  assert.equal(state.collections, 2);
});

Deno.test("garbage is collected at the first idle check after work", () => {
  const { state, collection } = idleProcess();
  collection.check();
  for (let check = 0; check < 10; check++) {
    state.processorMs += 1_000;
    state.heapBytes = 60 * MB;
    collection.check();
  }
  assert.equal(state.collections, 1, "it was busy");
  collection.check();
  assert.equal(state.collections, 2);
});

Deno.test("work in bursts with short pauses is followed by a collection once a minute", () => {
  const { state, collection, idle } = idleProcess();
  collection.check();
  const collectedAt: number[] = [];
  for (let check = 1; check <= 70; check++) {
    if (check % 5 === 1) {
      state.processorMs += 1_000;
      state.heapBytes = 60 * MB;
    }
    const { collections } = state;
    collection.check();
    if (state.collections > collections) collectedAt.push(check);
  }
  assert.deepEqual(collectedAt, [2, 32, 62]);
  state.heapBytes = 60 * MB;
  idle();
  assert.equal(state.collections, 1 + 3 + 1, "it was idle for longer");
});

Deno.test("memory of the C library is returned after each collection, and in pauses after much work", () => {
  const { state, collection } = idleProcess();
  collection.check();
  assert.equal(state.trims, 1);
  const work = (ms: number) => {
    state.processorMs += ms;
    collection.check();
    collection.check();
    return state.trims;
  };
  assert.equal(work(600), 2, "with a collection");
  assert.equal(work(600), 3);
  assert.equal(work(300), 3);
  assert.equal(work(300), 4);
  assert.equal(state.collections, 2);
});

Deno.test("a process whose other threads collect their garbage is idle", () => {
  const { state, collection } = idleProcess();
  collection.check();
  state.heapBytes = 60 * MB;
  collection.check();
  assert.equal(state.collections, 2);
  state.heapBytes = 60 * MB;
  for (let check = 0; check < 5; check++) {
    state.processorMs += check === 3 ? 150 : 20;
    collection.check();
  }
  assert.equal(state.collections, 3);
});

Deno.test("threads of one process can start concurrently", async () => {
  const script = fileURLToPath(new URL("idle_threads.ts", import.meta.url));
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-check", "--allow-read", "--allow-env", script],
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
});

Deno.test("the garbage of an idle process is collected again after twice the work of a collection", () => {
  const { state, collection, idle } = idleProcess();
  collection.check();
  // A collection takes 100 ms.
  for (let round = 0; round < 7; round++) {
    state.processorMs += 25;
    idle();
    assert.equal(state.collections, 1);
  }
  state.processorMs += 25;
  idle();
  assert.equal(state.collections, 2);
});
