/**
 * The maintenance process: jobs come on its standard input, answers leave on its standard output. It may read and write the
 * data folder and ask how much room the disk has, and ends when its input does.
 */
import { UnusableDatabaseError } from "../../engine/mod.ts";
import { encodeJsonLine } from "../../kit/processes/json_lines.ts";
import { writeAll } from "../../kit/durable_files.ts";
import { ArchiveError } from "../backups/archive/mod.ts";
import { createBackup } from "../backups/backup.ts";
import { BackupError } from "../backups/backup_error.ts";
import { RestoreError, type RestoreFault, stageRestore } from "../backups/restore/mod.ts";
import { type Answer, type Job, readMessages, type Work } from "./messages.ts";

/** Errors of backups whose messages are written for people. */
const TOLD = [BackupError, ArchiveError, UnusableDatabaseError];

function faultOf(error: unknown): RestoreFault | null {
  if (error instanceof RestoreError) return error.fault;
  return TOLD.some((kind) => error instanceof kind) ? "server" : null;
}

/** Aborted when there is nobody any more who wants the answer. */
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
      // Never the secret key: only an offline restore brings that back.
      return await stageRestore({ ...job.options, withSecret: false }, stopping);
    default:
      return job satisfies never;
  }
}

/** Answers until standard input ends. A job that is under way then is given up, and what it made so far is removed. */
async function serveJobs(): Promise<void> {
  let underWay: Promise<void> | undefined;
  for await (const job of readMessages<Job>(Deno.stdin.readable)) {
    // One at a time: main sends the next when it has the answer.
    underWay = answer(job).then((said) => writeAll(Deno.stdout, encodeJsonLine(said))).catch(() =>
      Deno.exit(1)
    );
  }
  stopping.abort(new Error("The server that wanted this has ended"));
  await underWay;
}

await serveJobs();
Deno.exit(0);
