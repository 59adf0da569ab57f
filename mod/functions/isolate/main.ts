/**
 * Entry point of an isolate: a process that runs app code. Runners start it directly, with the path of main's unix socket and
 * without functions of the service. Writers and readers of a server start with `mod/server/isolate_entry.ts`. The order of
 * its startup matters (README.md of `mod/functions`).
 */
import { createHash } from "node:crypto";
import {
  decodeId,
  openReaderDatabase,
  openWriterDatabase,
  type ReaderDatabase,
  UnusableDatabaseError,
  type WriterDatabase,
} from "../../engine/mod.ts";
import { AdaptiveSpinner } from "../../kit/adaptive_spinner.ts";
import { isDiskFull } from "../../kit/durable_files.ts";
import { collectWhenIdle } from "../../kit/processes/idle_collection.ts";
import { setTableResolver } from "../api/schema.ts";
import { isolateLimits } from "../limits.ts";
import type { SystemModule } from "../system_module.ts";
import { SOURCES_URL } from "../wire/app_sources.ts";
import type {
  Boot,
  BootAnswer,
  FromIsolate,
  JournalConfirmed,
  JournalRestart,
  Reached,
  ToIsolate,
} from "../wire/messages.ts";
import { ProgressFile } from "../wire/progress_file.ts";
import { FrameSender, readFrames } from "../wire/segment_frames.ts";
import type { App } from "./app/app.ts";
import { jsonSchemaOf } from "./app/json_schema.ts";
import { loadBundle, type LoadedApp } from "./app/loader.ts";
import { consoleText } from "./ctx/log_lines.ts";
import { withReadReports } from "./process/app_process.ts";
import { closeAppZod, loadAppZod } from "./process/app_zod.ts";
import { asAuthored, setAuthorFolder } from "./process/author_text.ts";
import { closeGlobals } from "./process/globals.ts";
import { watchIdle } from "./process/idle.ts";
import { closeIntrinsics } from "./process/intrinsics.ts";
import { Leftovers } from "./process/leftovers.ts";
import { lockDown } from "./process/lockdown.ts";
import { keepAppFolder, revokeAll } from "./process/permissions.ts";
import { catchUncaught, printBounded } from "./process/uncaught.ts";
import { refuseUnmapped } from "./process/unmapped_modules.ts";
import { type Append, Inbox, rowAppender } from "./runs/append_row.ts";
import { applyRows, reachedBy } from "./runs/apply_rows.ts";
import { currentCall } from "./runs/call.ts";
import { setFunctionsUrl } from "./runs/call_errors.ts";
import { dryRun } from "./runs/dry_run.ts";
import { noteMissingEnv } from "./runs/missing_env.ts";
import { runQueryBatch } from "./runs/reader_loop.ts";
import { runningAction } from "./runs/run_action.ts";
import { RunnerLoop, type ToRunner } from "./runs/runner_loop.ts";
import { runBatch } from "./runs/writer_loop.ts";

const PRINT_CHARS = 12;

/** Returns a fingerprint of each app function by path, derived from its kind, schemas and source. */
function functionFingerprints({ functions }: Pick<App, "functions">): Record<string, string> {
  const prints: Record<string, string> = {};
  for (const { udfPath, spec, system } of functions.values()) {
    if (system) continue;
    const { kind, visibility, args, returns, handler } = spec;
    const schemas = [args, returns].map((schema) => schema === null ? null : jsonSchemaOf(schema));
    prints[udfPath] = createHash("sha256")
      .update(JSON.stringify([kind, visibility, schemas, sourceOf(handler)])).digest("base64url")
      .slice(0, PRINT_CHARS);
  }
  return prints;
}

const { toString } = Function.prototype;

function sourceOf(handler: unknown): string {
  return String(Reflect.apply(toString, handler, []));
}

const exit: (code: number) => never = Deno.exit;
const { error: printError } = console;

type Database =
  | { readonly role: "writer"; readonly writer: WriterDatabase }
  | { readonly role: "reader"; readonly reader: ReaderDatabase }
  | { readonly role: "runner" };

function openDatabase({ role, databasePath, journal, cacheBytes }: Boot): Database {
  switch (role) {
    case "writer":
      return {
        role,
        writer: openWriterDatabase(databasePath, {
          ...(journal && { journal }),
          ...(cacheBytes !== undefined && { cacheBytes }),
        }),
      };
    case "reader":
      return { role, reader: openReaderDatabase(databasePath, cacheBytes) };
    case "runner":
      return { role };
    default:
      return role satisfies never;
  }
}

/** Opens the database. On failure reports the reason to main and returns `null`. */
async function openOrReport(boot: Boot, sender: FrameSender): Promise<Database | null> {
  try {
    return openDatabase(boot);
  } catch (error) {
    if (!(error instanceof UnusableDatabaseError)) throw error;
    await sender.send({ type: "Broken", message: error.message } satisfies FromIsolate);
    return null;
  }
}

async function main(socketPath: string, systemModules: readonly SystemModule[]): Promise<void> {
  const conn = await Deno.connect({ transport: "unix", path: socketPath });
  const sender = new FrameSender(conn);
  const inbox = new Inbox(readFrames<ToIsolate>(conn));
  // Loaded before Boot arrives: a spare isolate has everything ready when it is assigned.
  await refuseUnmapped();
  await loadAppZod();
  const first = await inbox.next();
  if (first === null) return;
  const boot = first.message;
  if (boot.type !== "Boot") throw new TypeError(`The first frame must be Boot, not ${boot.type}`);

  const database = await openOrReport(boot, sender);
  if (database === null) return;
  const progress = new ProgressFile(boot.progressPath);
  keepAppFolder(boot, socketPath);
  setFunctionsUrl(SOURCES_URL + boot.functions);
  setAuthorFolder(boot.authorFolder);
  setTableResolver((id) => {
    const reads = currentCall()?.reads;
    if (reads !== undefined) return reads.tableOf(id);
    // Without a transaction only the format of an id can be checked: in actions, and while the schema is applied.
    return decodeId(id) === null ? null : undefined;
  });
  watchIdle();
  catchUncaught();
  lockDown({
    role: boot.role,
    env: boot.env,
    onMissingEnv: (name) => noteMissingEnv(name, { role: boot.role, env: boot.env }),
    print: (level, values) => {
      const call = currentCall() ?? runningAction();
      if (call !== null) call.logLines.addConsole(level, values);
      else printBounded(`[${level}] ${consoleText(values)}`);
    },
  });

  for (const { settings } of systemModules) {
    if (settings !== undefined && boot.settings !== undefined && settings.name in boot.settings) {
      settings.configure(boot.settings[settings.name]);
    }
  }
  const appends = boot.journal === "external" && boot.follows !== true;
  const append = appends ? rowAppender({ sender, inbox }) : null;
  const answer = await load(boot, { database, systemModules, sender, inbox, append });
  if (!("app" in answer)) {
    await sender.send(answer satisfies FromIsolate);
    return;
  }
  revokeAll(boot.role);
  await sender.send(answer.ready satisfies FromIsolate);
  await serve(inbox, { app: answer.app, boot, database, progress, sender, append });
  // The last connection checkpoints the write-ahead log and removes it.
  if (database.role === "writer") database.writer[Symbol.dispose]();
}

/** Loads the app and applies its schema to the database. */
async function load(
  boot: Boot,
  { database, systemModules, sender, inbox, append }: {
    readonly database: Database;
    readonly systemModules: readonly SystemModule[];
    readonly sender: FrameSender;
    readonly inbox: Inbox;
    readonly append: Append | null;
  },
): Promise<{ readonly app: LoadedApp; readonly ready: BootAnswer } | BootAnswer> {
  const {
    role,
    bundle,
    tableNumbers = {},
    follows = false,
    check,
    adHocQuery,
    waits = false,
  } = boot;
  try {
    let app: LoadedApp;
    try {
      app = await loadBundle(bundle, systemModules, adHocQuery);
    } finally {
      // Locked before anything is reported to main.
      closeIntrinsics();
      closeAppZod();
      closeGlobals();
    }
    if (waits && role === "writer") {
      await dryRun().catch((error) => printBounded(`The writer's warm-up failed: ${error}`));
    }
    // Sent before database work, which blocks the event loop.
    const looksAtAll = role === "writer" || check !== undefined;
    if (looksAtAll || waits) await sender.send({ type: "Loaded" } satisfies FromIsolate);
    if (waits) await fitted(inbox);
    if (waits && database.role === "writer") database.writer.reload();
    let ts = 0;
    let lastGroup: string | null = null;
    let reached: Reached | null = null;
    let switchedVersion = false;
    let changed = false;
    if (database.role === "writer" && follows) {
      ts = database.writer.ts;
      reached = reachedBy(database.writer);
    } else if (database.role === "writer") {
      if (append !== null && reachedBy(database.writer) === null) {
        throw new Error("This database has no history that is stored elsewhere");
      }
      const staged = database.writer.stageSchema(app.schema, {
        tableNumbers: new Map(Object.entries(tableNumbers)),
        ...(append !== null && { version: boot.version ?? null }),
      });
      await commitStaged(staged, append);
      changed = staged.row !== null;
      switchedVersion = staged.row !== null && staged.row.ts !== staged.row.tsBefore;
      ts = database.writer.ts;
      lastGroup = database.writer.lastGroup();
      if (append !== null) reached = reachedBy(database.writer);
    } else if (database.role === "reader" && check !== undefined) {
      ts = database.reader.openSnapshot();
      const schema = database.reader.previewSchema(app.schema, check);
      database.reader.closeSnapshot();
      const found = { schema, functions: functionFingerprints(app), crons: app.crons };
      return { app, ready: { type: "Ready", functions: [], ts, lastGroup, check: found } };
    } else if (database.role === "reader") {
      database.reader.useSchema(app.schema, { missing: follows ? "leave" : "refuse" });
      ts = database.reader.openSnapshot();
      database.reader.closeSnapshot();
    }
    const functions = [...app.functions.values()].map(({ udfPath, spec: { kind, visibility } }) =>
      [udfPath, { kind, visibility }] as const
    );
    const { crons, routes } = app;
    const ready = {
      type: "Ready",
      functions,
      ts,
      lastGroup,
      crons,
      routes,
      ...(switchedVersion && { switchedVersion }),
      ...(changed && { changed }),
    } as const;
    return { app, ready: reached === null ? ready : { ...ready, reached } };
  } catch (error) {
    const message = asAuthored(error instanceof Error ? error.message : String(error));
    return { type: "Broken", message, ...(isDiskFull(error) && { code: "disk_full" }) };
  }
}

/** Waits for `SchemaReady`. Exits if main closes the socket instead. */
async function fitted(inbox: Inbox): Promise<void> {
  const next = await inbox.next();
  if (next === null) exit(0);
  const { type } = next.message;
  if (type !== "SchemaReady") throw new TypeError(`An isolate that waits cannot be sent ${type}`);
}

async function commitStaged(
  { row, commit, undo }: ReturnType<WriterDatabase["stageSchema"]>,
  append: Append | null,
): Promise<void> {
  if (row !== null && append !== null) {
    try {
      await append(row);
    } catch (error) {
      undo();
      throw error;
    }
  }
  commit();
}

interface Parts {
  readonly app: LoadedApp;
  readonly boot: Boot;
  readonly database: Database;
  readonly progress: ProgressFile;
  readonly sender: FrameSender;
  readonly append: Append | null;
}

/** Serves until main closes the socket. */
async function serve(inbox: Inbox, { app, boot, database, progress, sender, append }: Parts): Promise<void> {
  const untilNext = new AdaptiveSpinner(isolateLimits.spinMs);
  const leftovers = new Leftovers();
  const env = withReadReports(
    Object.freeze({ ...boot.env }),
    (name) => noteMissingEnv(name, { role: "ctx", env: boot.env }),
  );
  const runner = new RunnerLoop(app, { env, sender, progress, leftovers });
  for (let frame = await inbox.next(); frame !== null; frame = await inbox.next()) {
    const { message } = frame;
    if (database.role === "writer" && message.type === "Batch") {
      leftovers.begin();
      await runBatch({ app, database: database.writer, progress, sender, untilNext, append }, message);
      leftovers.end();
    } else if (database.role === "writer" && message.type === "ApplyRows") {
      const { rows } = message;
      await applyRows({ database: database.writer, progress, sender }, { rows, bodies: frame.segments });
    } else if (database.role === "writer" && isAboutJournal(message)) {
      updateJournal(database.writer, message);
    } else if (database.role === "reader" && message.type === "RunQueryBatch") {
      const next = async () => (await inbox.next())?.message ?? null;
      leftovers.begin();
      await runQueryBatch({ app, database: database.reader, progress, sender, next }, message);
      leftovers.end();
    } else if (database.role === "runner" && isForRunner(message)) {
      runner.take({ ...frame, message }, fail);
    } else {
      throw new TypeError(`A ${boot.role} cannot be sent ${message.type}`);
    }
  }
}

function isForRunner(message: ToIsolate): message is ToRunner {
  return message.type !== "Boot" && message.type !== "SchemaReady" && message.type !== "Batch" &&
    message.type !== "RunQueryBatch" && message.type !== "QueryBatchGo" && message.type !== "ApplyRows" &&
    message.type !== "RowAppended" && !isAboutJournal(message);
}

function isAboutJournal(message: ToIsolate): message is JournalConfirmed | JournalRestart {
  return message.type === "JournalConfirmed" || message.type === "JournalRestart";
}

/** Runs between two batches, as one short transaction. */
function updateJournal(database: WriterDatabase, message: JournalConfirmed | JournalRestart): void {
  try {
    if (message.type === "JournalRestart") database.restartJournal(message);
    else database.confirmJournal(message);
  } catch (error) {
    // For example on a full disk. The rows stay, and the next message retries.
    printBounded(
      `The journal could not be cleared: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

function fail(error: unknown): never {
  printError(error);
  exit(1);
}

/** Ignores signals of the process group until main closes the socket. The runtime overrides the shell's setting. */
function ignoreSignals(): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) Deno.addSignalListener(signal, () => {});
}

/** Serves main at a unix socket until main closes it, then ends the process. */
export function runIsolate(socketPath: string, systemModules: readonly SystemModule[]): void {
  ignoreSignals();
  collectWhenIdle({ hidden: true });
  // Not a top-level await: a pending module would look like an idle event loop.
  main(socketPath, systemModules).then(() => exit(0), fail);
}

if (import.meta.main) runIsolate(Deno.args[0] ?? "", []);
