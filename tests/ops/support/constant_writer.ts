/**
 * A process that writes to a database as fast as it can. Each transaction moves an amount between two accounts, so that
 * their sum stays; and stores a file, or deletes one, in the order of the service: the blob is there before its document,
 * and goes after it. Answers each line on its input with the number of its commits; ends with its input.
 *
 * A line that says `for a backup` bounds what comes and goes behind its back, however slow it is: from then on a file is
 * deleted only if it was there at that line, or the backup has linked it, but for a few that go as soon as they are there.
 */
import { join } from "node:path";
import { openWriterDatabase } from "../../../mod/engine/mod.ts";
import { opsLimits } from "../../../mod/ops/limits.ts";
import { commit, schema } from "./data_folders.ts";
import { turn } from "../../support/waiting.ts";

const ACCOUNTS = 20;
const FILES_KEPT = 30;
/** While nothing may be deleted. */
const FILES_MAX = 300;
/** A backup takes its state once more for each, and gives up taking states later. */
const GONE_AT_ONCE = opsLimits.snapshotAttemptsMax - 1;

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
/** Of these any may go; `null`: any may. */
let old: Set<StoredFile> | null = null;
let goneAtOnce = 0;
let commits = 0;
let ended = false;

(async () => {
  for await (const line of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    if (line.startsWith("for a backup")) [old, goneAtOnce] = [new Set(files), 0];
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
  // Reads what is asked.
  await turn();
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

/** Gives back whether there was one to delete. */
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
  return goneAtOnce++ < GONE_AT_ONCE;
}
