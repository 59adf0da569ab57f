/** A process with access to a folder that main cannot use: runs one job from standard input, then exits. */
import { writeAll } from "../../../kit/durable_files.ts";
import { encodeJsonLine, readJsonLines } from "../../../kit/processes/helper_process.ts";
import { opsLimits } from "../../limits.ts";
import { type FolderJob, runFolderJob } from "./backup_target.ts";

const messages = readJsonLines(Deno.stdin.readable, opsLimits.maintenanceLineCharsMax);
const { value } = await messages.next();
if (value === undefined) Deno.exit(1);
// The input ends when the main process exits or the timeout expires.
messages.next().finally(() => Deno.exit(1));
await writeAll(Deno.stdout, encodeJsonLine(await runFolderJob(JSON.parse(value) as FolderJob)));
Deno.exit(0);
