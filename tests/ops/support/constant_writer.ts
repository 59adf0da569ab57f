/**
 * A process that writes to a database as fast as it can. Each transaction moves an amount between two accounts, so that
 * their sum stays; and stores a file, or deletes one, in the order of the service: the blob is there before its document,
 * and goes after it. Answers each line on its input with the number of its commits; ends with its input.
 */
import { join } from "node:path";
import { openWriterDatabase } from "../../../mod/engine/mod.ts";
import { commit, schema } from "./data_folders.ts";
import { turn } from "../../support/waiting.ts";

const ACCOUNTS = 20;
const FILES_KEPT = 30;

const [dataDir = ""] = Deno.args;
using writer = openWriterDatabase(join(dataDir, "data.db"), { now: () => Date.now() });
writer.applySchema(schema);
const accounts = commit(
  writer,
  (tx) => Array.from({ length: ACCOUNTS }, () => tx.insert("accounts", { amount: 1000 })),
);

const files: { readonly id: string; readonly path: string }[] = [];
let commits = 0;
let ended = false;

(async () => {
  for await (const _ of Deno.stdin.readable) {
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
  else deleteFile();
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

function deleteFile(): void {
  const [file] = files.splice(Math.floor(Math.random() * files.length), 1);
  commit(writer, (tx) => tx.delete(file!.id));
  commits++;
  Deno.removeSync(file!.path);
}
