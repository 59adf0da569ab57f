/**
 * Process with access to a folder that the main process cannot use. Runs one {@linkcode BackupFolderTarget} job from standard input,
 * answers on standard output and exits, at the latest when its input ends.
 */
import { writeAll } from "../../../kit/durable_files.ts";
import { encodeJsonLine, readJsonLines } from "../../../kit/processes/json_lines.ts";
import { opsLimits } from "../../limits.ts";
import { BackupError } from "../backup_error.ts";
import type { FolderAnswer, FolderJob } from "./folder_messages.ts";
import { BackupFolderTarget } from "./folder_target.ts";

async function done(job: FolderJob): Promise<readonly string[]> {
  const { folder } = job;
  // Only `open` creates the folder: otherwise its disk may not be mounted.
  await using target = job.call === "open"
    ? await BackupFolderTarget.open(folder)
    : BackupFolderTarget.at(folder);
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
      return await target.fetch(job.name, job.path) ? [job.name] : [];
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
// The input ends when the main process exits or the timeout expires.
messages.next().finally(() => Deno.exit(1));
await writeAll(Deno.stdout, encodeJsonLine(await answer(JSON.parse(value) as FolderJob)));
Deno.exit(0);
