/** Entry point of the maintenance process, which may access only the data folder, and exits when its input ends. */
import { UnusableDatabaseError } from "../../engine/mod.ts";
import { encodeJsonLine } from "../../kit/processes/helper_process.ts";
import { isDiskFull, writeAll } from "../../kit/durable_files.ts";
import { ArchiveError } from "../backups/archive/mod.ts";
import { createBackup } from "../backups/backup.ts";
import { BackupError } from "../backups/backup_error.ts";
import { RestoreError, type RestoreFailureCause, stageRestore } from "../backups/restore/mod.ts";
import { type Answer, type Job, readMessages, type Work } from "./mod.ts";

const USER_ERRORS = [BackupError, ArchiveError, UnusableDatabaseError];

function faultOf(error: unknown): RestoreFailureCause | null {
  if (error instanceof RestoreError) return error.fault;
  if (isDiskFull(error)) return "room";
  return USER_ERRORS.some((kind) => error instanceof kind) ? "server" : null;
}

/** Aborted when the main process has gone. */
const stopping = new AbortController();

async function answer(job: Job): Promise<Answer> {
  try {
    return { ok: true, result: await work(job) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { ok: false, fault: faultOf(error), message };
  }
}

async function work(job: Job): Promise<Work[Job["kind"]]["result"]> {
  switch (job.kind) {
    case "backup":
      return await createBackup(job.options, stopping);
    case "stage":
      // Never the secret key, which only an offline restore replaces.
      return await stageRestore({ ...job.options, withSecret: false }, stopping);
    default:
      return job satisfies never;
  }
}

/** Answers until standard input ends, then aborts a running job and removes its partial results. */
async function serveJobs(): Promise<void> {
  let running: Promise<void> | undefined;
  for await (const job of readMessages<Job>(Deno.stdin.readable)) {
    // One at a time: the next job is sent after the answer.
    running = answer(job).then((answered) => writeAll(Deno.stdout, encodeJsonLine(answered))).catch(() =>
      Deno.exit(1)
    );
  }
  stopping.abort(new Error("The server has stopped"));
  await running;
}

await serveJobs();
Deno.exit(0);
