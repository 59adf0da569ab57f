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

Deno.test("the garbage of a start is collected at the first idle check", () => {
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

Deno.test("garbage is collected after work in bursts has ended, not in its short pauses", () => {
  const { state, collection, idle } = idleProcess();
  collection.check();
  for (let check = 0; check < 70; check++) {
    if (check % 5 === 0) {
      state.processorMs += 1_000;
      state.heapBytes = 60 * MB;
    }
    collection.check();
  }
  assert.equal(state.collections, 1);
  idle();
  assert.equal(state.collections, 2);
});

Deno.test("memory outside the heap is released after each collection, and in pauses after much work", () => {
  const { state, collection, idle } = idleProcess();
  collection.check();
  assert.equal(state.trims, 1, "with a collection");
  const work = (ms: number) => {
    state.processorMs += ms;
    collection.check();
    collection.check();
    return state.trims;
  };
  assert.equal(work(600), 2);
  assert.equal(work(300), 2);
  assert.equal(work(300), 3);
  assert.equal(state.collections, 1);
  idle();
  assert.deepEqual([state.collections, state.trims], [2, 4]);
});

Deno.test("a process whose other threads collect their garbage is idle", () => {
  const { state, collection } = idleProcess();
  collection.check();
  state.heapBytes = 60 * MB;
  for (let check = 0; check < 5; check++) {
    state.processorMs += check === 3 ? 150 : 20;
    collection.check();
  }
  assert.equal(state.collections, 2);
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
