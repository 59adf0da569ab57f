/** Runs read-only checks on a data folder. */
import { join } from "node:path";
import { checkSqliteFile, EngineError, openSnapshotCheck } from "../../engine/mod.ts";
import { statIfThere } from "../../kit/durable_files.ts";
import { archiveNames } from "../backups/archive/mod.ts";
import { LOG_SCHEMA_SQL, OLD_FORMAT_VERSION, otherLogFormat } from "../log/store/log_database.ts";
import type { OnProgress } from "../progress.ts";
import { checkClock } from "./clock_check.ts";
import { checkFiles, type FilesCheckOptions } from "./files_check.ts";
import type { Finding } from "./finding.ts";
import { checkSpace } from "./space_check.ts";

export interface DoctorOptions extends Omit<FilesCheckOptions, "database"> {
  /** Whether files are in a bucket, in which case they are not checked. */
  readonly filesElsewhere: boolean;
}

/** Yields the findings as they become known. */
export async function* diagnose(options: DoctorOptions): AsyncGenerator<Finding> {
  const database = join(options.dataDir, archiveNames.database);
  const found = checkDatabase(database, options.onProgress);
  yield* found.findings;
  yield await files(database, { ...options, isReadable: found.lastCreationTime !== null });
  const onStep = (what: string) => options.onProgress?.({ what, done: 0, of: null, unit: "bytes" });
  onStep("Checking the execution log");
  yield await log(join(options.dataDir, archiveNames.log));
  yield await checkSpace(options.dataDir, database);
  yield checkClock(options.now(), found.lastCreationTime);
}

interface CheckedData {
  readonly findings: readonly Finding[];
  /** `null` if the database is damaged. */
  readonly lastCreationTime: number | null;
}

function checkDatabase(path: string, onProgress: OnProgress = () => {}): CheckedData {
  let sound: { readonly ts: number; readonly lastCreationTime: number } | null = null;
  const whole = () => ({
    check: "integrity",
    status: "ok",
    message: `the database is intact at ts ${sound?.ts}`,
  } as const);
  try {
    using checkup = openSnapshotCheck(path);
    // SQLite does not report progress here.
    onProgress({ what: "Checking the database file", done: 0, of: null, unit: "bytes" });
    sound = checkup.file();
    const { tables, documents } = checkup.indexes((done, of) =>
      onProgress({ what: "Checking documents and indexes", done, of, unit: "documents" })
    );
    const message = `${tables} tables, ${documents} documents: all indexes are consistent`;
    return {
      findings: [whole(), { check: "indexes", status: "ok", message }],
      lastCreationTime: sound.lastCreationTime,
    };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const { message } = error;
    if (sound === null) {
      return {
        findings: [{ check: "integrity", status: "fail", message }, {
          check: "indexes",
          status: "warn",
          message: "not checked: the database cannot be read",
        }],
        lastCreationTime: null,
      };
    }
    return {
      findings: [whole(), { check: "indexes", status: "fail", message }],
      lastCreationTime: sound.lastCreationTime,
    };
  }
}

async function files(
  database: string,
  { filesElsewhere, isReadable, ...options }: DoctorOptions & { readonly isReadable: boolean },
): Promise<Finding> {
  if (filesElsewhere) {
    return { check: "files", status: "ok", message: "not checked: files are in a bucket" };
  }
  if (!isReadable) {
    return { check: "files", status: "warn", message: "not checked: the database cannot be read" };
  }
  try {
    return await checkFiles({ ...options, database });
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return { check: "files", status: "fail", message: error.message };
  }
}

async function log(path: string): Promise<Finding> {
  if (await statIfThere(path) === null) return { check: "log", status: "ok", message: "no execution log" };
  const format = otherLogFormat(path);
  if (format !== null) {
    const action = format === OLD_FORMAT_VERSION ? "converts it" : "starts a new one";
    const message = `written by another version of the server (format ${format}); a server ${action}`;
    return { check: "log", status: "warn", message };
  }
  try {
    checkSqliteFile(path, () => LOG_SCHEMA_SQL);
    return { check: "log", status: "ok", message: "the execution log is intact" };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return { check: "log", status: "warn", message: `${error.message} (a server starts a new one)` };
  }
}
