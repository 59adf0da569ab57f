import assert from "node:assert/strict";
import { join } from "node:path";
import { watchFolder } from "../../mod/server/dev/watch_folder.ts";
import { pause } from "../support/waiting.ts";

interface Watched extends AsyncDisposable {
  readonly folder: string;
  readonly signal: AbortController;
  /** Resolves when the watch has called `onEdit` this often. */
  calls(count: number): Promise<void>;
  count(): number;
  /** Files of the last call. */
  files(): readonly string[];
}

/** A watched folder. `during` runs inside each call. */
async function watched(
  during: (call: number) => Promise<void> = () => Promise.resolve(),
  settleMs?: number,
): Promise<Watched> {
  const folder = await Deno.makeTempDir();
  await Deno.mkdir(join(folder, "deep"));
  const signal = new AbortController();
  let count = 0;
  let edited: readonly string[] = [];
  let wake = () => {};
  const watching = watchFolder(folder, {
    signal: signal.signal,
    ...(settleMs !== undefined && { settleMs }),
    onEdit: async (files) => {
      edited = files;
      const call = ++count;
      await during(call);
      wake();
    },
  });
  return {
    folder,
    signal,
    count: () => count,
    files: () => edited,
    async calls(expected) {
      while (count < expected) await new Promise<void>((resolve) => wake = resolve);
    },
    async [Symbol.asyncDispose]() {
      signal.abort();
      await watching;
      await Deno.remove(folder, { recursive: true });
    },
  };
}

Deno.test("a burst of edits, new folders included, is one call", async () => {
  // Far longer than the time between two edits on a busy machine.
  await using w = await watched(() => Promise.resolve(), 1_000);
  // In one task, so that no timer runs between two edits.
  for (let i = 0; i < 20; i++) Deno.writeTextFileSync(join(w.folder, "deep", "a.ts"), `${i}`);
  Deno.writeTextFileSync(join(w.folder, "b.tsx"), "");
  await w.calls(1);
  assert.equal(w.count(), 1);
  assert.deepEqual(w.files(), ["b.tsx", "deep/a.ts"]);
});

Deno.test("edits during a call lead to one more call", async () => {
  await using w = await watched(async (call) => {
    if (call > 1) return;
    for (let i = 0; i < 5; i++) await Deno.writeTextFile(join(w.folder, "a.ts"), `during ${i}`);
    // The events of these edits have to arrive during the call.
    await pause(50);
  });
  await Deno.writeTextFile(join(w.folder, "a.ts"), "first");
  await w.calls(2);
  assert.equal(w.count(), 2);
});

Deno.test("files that are not source code, and reading, are no edits", async () => {
  await using w = await watched();
  await Deno.writeTextFile(join(w.folder, "a.ts"), "x");
  await w.calls(1);
  await Deno.readTextFile(join(w.folder, "a.ts"));
  await Deno.mkdir(join(w.folder, "node_modules"));
  for (const name of [".a.ts.swp", ".hidden.ts", "a.ts~", "notes.md", "4913", "node_modules/p.js"]) {
    await Deno.writeTextFile(join(w.folder, name), "x");
  }
  await Deno.remove(join(w.folder, "notes.md"));
  await pause(150);
  assert.equal(w.count(), 1);
  // The folder is still watched.
  await Deno.remove(join(w.folder, "a.ts"));
  await w.calls(2);
  assert.equal(w.count(), 2);
});
