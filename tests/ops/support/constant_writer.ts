/**
 * A process that writes to a database as fast as it can. Each transaction moves an amount between two accounts, whose sum is
 * constant, and stores or deletes a file in the order of the server: the blob exists before its document and is removed after
 * it. Answers each line of its input with the number of its commits; exits with its input.
 *
 * The line `for a backup` bounds changes during a backup on slow machines: from then on only files that existed at that line or
 * that the backup has linked are deleted, except for a few that are deleted right after their creation.
 */
import { join } from "node:path";
import { openWriterDatabase } from "../../../mod/engine/mod.ts";
import { opsLimits } from "../../../mod/ops/limits.ts";
import { commit, schema } from "./data_folders.ts";
import { nextTick } from "../../support/waiting.ts";

const ACCOUNTS = 20;
const FILES_KEPT = 30;
/** While nothing may be deleted. */
const FILES_MAX = 300;
/** A backup retries its snapshot for each, up to a limit. */
const REMOVED_AT_ONCE = opsLimits.snapshotAttemptsMax - 1;

const [dataDir = ""] = Deno.args;
using writer = openWriterDatabase(join(dataDir, "data.db"), { now: () => Date.now() });
writer.applySchema(schema);
const accounts = commit(
  writer,
  (tx) => Array.from({ length: ACCOUNTS }, () => tx.insert("accounts", { amount: 1000 })),
);

interface StoredFile {
  readonly id: string;
  readonly path: string;
}

let files: StoredFile[] = [];
/** Files that may be deleted; `null` allows all. */
let old: Set<StoredFile> | null = null;
let removedAtOnce = 0;
let commits = 0;
let ended = false;

(async () => {
  for await (const line of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    if (line.startsWith("for a backup")) [old, removedAtOnce] = [new Set(files), 0];
    await Deno.stdout.write(new TextEncoder().encode(`${commits}\n`));
  }
  ended = true;
})();

await Deno.stdout.write(new TextEncoder().encode("ready\n"));
while (!ended) {
  const moved = 1 + Math.floor(Math.random() * 100);
  const from = accounts[Math.floor(Math.random() * ACCOUNTS)]!;
  const to = accounts[Math.floor(Math.random() * ACCOUNTS)]!;
  commit(writer, (tx) => {
    for (const [id, by] of [[from, -moved], [to, moved]] as const) {
      tx.patch(id, { amount: Number(tx.get(id)?.amount) + by });
    }
  });
  commits++;
  if (files.length < FILES_KEPT) storeFile();
  else if (!deleteFile() && files.length < FILES_MAX) storeFile();
  // Reads requests.
  await nextTick();
}

function storeFile(): void {
  const blob = crypto.randomUUID().replaceAll("-", "");
  const folder = join(dataDir, "storage", blob.slice(0, 2));
  const path = join(folder, blob);
  Deno.mkdirSync(folder, { recursive: true });
  Deno.writeTextFileSync(path, blob);
  files.push({ path, id: commit(writer, (tx) => tx.insert("_storage", { blob, size: blob.length })) });
  commits++;
}

/** Returns whether there was a file to delete. */
function deleteFile(): boolean {
  const at = Math.floor(Math.random() * files.length);
  const file = [...files.slice(at), ...files.slice(0, at)].find(mayGo);
  if (file === undefined) return false;
  files = files.filter((other) => other !== file);
  commit(writer, (tx) => tx.delete(file.id));
  commits++;
  Deno.removeSync(file.path);
  return true;
}

function mayGo(file: StoredFile): boolean {
  if (old === null || old.has(file) || (Deno.statSync(file.path).nlink ?? 1) > 1) return true;
  return removedAtOnce++ < REMOVED_AT_ONCE;
}
