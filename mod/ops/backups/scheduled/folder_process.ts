/**
 * The process for a folder that main may not use: it does one job of a {@linkcode FolderTarget} and ends. The job comes on
 * its standard input, the answer leaves on its standard output; it is ended with the input.
 */
import { writeAll } from "../../../kit/durable_files.ts";
import { encodeJsonLine, readJsonLines } from "../../../kit/processes/json_lines.ts";
import { opsLimits } from "../../limits.ts";
import { BackupError } from "../backup_error.ts";
import type { FolderAnswer, FolderJob } from "./folder_messages.ts";
import { FolderTarget } from "./folder_target.ts";

async function done(job: FolderJob): Promise<readonly string[]> {
  const { folder } = job;
  // Only what tries it makes the folder: it may be one of a disk that is not mounted now.
  await using target = job.call === "open" ? await FolderTarget.open(folder) : FolderTarget.at(folder);
  switch (job.call) {
    case "open":
      return [];
    case "check":
      await target.check();
      return [];
    case "list":
      return await target.list();
    case "put":
      await target.put(job.name, job.path);
      return [];
    case "bring":
      return await target.bring(job.name, job.path) ? [job.name] : [];
    case "remove":
      await target.remove(job.name);
      return [];
    default:
      return job satisfies never;
  }
}

async function answer(job: FolderJob): Promise<FolderAnswer> {
  try {
    return { ok: true, names: await done(job) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { ok: false, message, told: error instanceof BackupError };
  }
}

const messages = readJsonLines(Deno.stdin.readable, opsLimits.maintenanceLineCharsMax);
const { value } = await messages.next();
if (value === undefined) Deno.exit(1);
// The input ends when main does, or has enough of waiting.
messages.next().finally(() => Deno.exit(1));
await writeAll(Deno.stdout, encodeJsonLine(await answer(JSON.parse(value) as FolderJob)));
Deno.exit(0);
