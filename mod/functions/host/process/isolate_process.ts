/** Isolates as child processes: start, socket, progress file, end. */
import { join } from "node:path";
import type { Log } from "../../../kit/log.ts";
import { isolateLimits } from "../../limits.ts";
import { FrameSender, readFrames, type WireFrame } from "../../wire/segment_frames.ts";
import { parseProgress, type Progress } from "../../wire/progress_file.ts";
import type {
  AppendRow,
  Boot,
  CheckBounds,
  FromIsolate,
  IsolateRole,
  ToIsolate,
} from "../../wire/messages.ts";
import type { CommitAppender } from "../writer/commit_appender.ts";
import type { IsolatePaths } from "./start_flags.ts";
import { authorTexts } from "../../wire/app_sources.ts";
import type { Version, VersionStore } from "../../versions/version_store.ts";
import { isolateImportMap } from "./isolate_import_map.ts";
import type { Clock } from "../../../kit/clock.ts";
import type { LimitedCommand } from "../../../kit/processes/helper_process.ts";
import { plainEntry } from "./command.ts";
import { type IsolateMemory, usualMemory } from "./isolate_memory.ts";
import { IsolateStats } from "./isolate_stats.ts";
import type { Death, Isolate, IsolateFrame, IsolateStarter, Ready, StartResult } from "./isolate.ts";
import { machineMemory, type MemoryReader, MemoryWatch } from "./memory_watch.ts";
import { IsolateStderr } from "./isolate_stderr.ts";
import {
  type BootGate,
  PrestartedIsolates,
  startWaiting,
  type WaitingIsolate,
} from "./prestarted_isolates.ts";

/** Time for an isolate to end after its socket is closed, before it is killed. */
const CLOSE_MS = 2_000;
/** Longest unix socket path supported by all systems. */
const SOCKET_PATH_CHARS_MAX = 100;
/** Length of `/writer-123456`. */
const FILE_NAME_CHARS = 16;
const PROGRESS_BYTES = 16;
/** Abort messages of V8 and the runtime when memory runs out. */
const OUT_OF_MEMORY = /out of memory|allocation failed|\bOOM\b|^memory allocation of \d+ bytes failed/m;

export interface ProcessStarterOptions {
  /** Absolute and real. */
  readonly dataDir: string;
  /** The code that isolates load until `use` is called. */
  readonly version: Version;
  /** Locks versions while isolates run them. */
  readonly versions: Pick<VersionStore, "hold">;
  readonly env: Readonly<Record<string, string>>;
  readonly actionNet: readonly string[] | null;
  readonly settings: Readonly<Record<string, unknown>>;
  /** Numbers of tables that the database does not have yet. */
  readonly tableNumbers?: Readonly<Record<string, number>>;
  /** Enables the writer's journal. */
  readonly journal?: { readonly pendingBytesMax: number };
  readonly follows?: boolean;
  /** Appends the writer's rows to a log elsewhere before they are committed. Optional. */
  readonly rows?: CommitAppender;
  /** Entry module of isolates. Without functions of the service if absent. */
  readonly entry?: URL;
  readonly command: (paths: IsolatePaths) => LimitedCommand;
  readonly log: Log;
  readonly clock: Clock;
  /** Whether another server still uses the data folder. Its files are left alone. */
  readonly shared?: boolean;
  readonly isolateMemory?: IsolateMemory;
  /** Checks the memory of isolates. Defaults to the watch for this machine. `null` disables it. */
  readonly memory?: MemoryReader | null;
}

/** Starts isolates. Disposal ends all of them and removes their files. */
export class ProcessStarter implements IsolateStarter, AsyncDisposable {
  readonly census = new IsolateStats();
  readonly #options: ProcessStarterOptions;
  /** A folder with access for this user only: processes that can reach its sockets are trusted. */
  readonly #runDir: string;
  readonly #running = new Set<IsolateProcess>();
  readonly #waiting = new PrestartedIsolates();
  /** Files from which prestarted isolates load their code. */
  readonly #places = new Set<string>();
  /** Set by `use`. */
  #version: Version;
  /** Set by `useEnv`. */
  #env: Readonly<Record<string, string>>;
  readonly #memoryWatch: MemoryWatch | null;
  #started = 0;
  #disposed = false;
  /** Ends isolates with main where the kernel does not: one that is migrating would otherwise hold the database. */
  readonly #killAll = () => this.#running.forEach((process) => process.kill());

  private constructor(options: ProcessStarterOptions, runDir: string) {
    this.#options = options;
    this.#runDir = runDir;
    globalThis.addEventListener("unload", this.#killAll);
    this.#version = options.version;
    this.#env = options.env;
    const { memory: read = machineMemory, clock, isolateMemory: { dataMiB } = usualMemory } = options;
    this.#memoryWatch = read === null
      ? null
      : new MemoryWatch({ read, clock, isolates: () => this.#running, dataMiB });
  }

  static async create(options: ProcessStarterOptions): Promise<ProcessStarter> {
    if (options.shared !== true) await removeRunDirs(options.dataDir);
    return new ProcessStarter(options, await makeRunDir(options.dataDir));
  }

  use(version: Version): void {
    this.#version = version;
  }

  async warm(role: IsolateRole): Promise<void> {
    await this.#wait(role, this.#version).connected;
  }

  /** Whether a prestarted isolate can load the app before it opens the database. */
  #waits(role: IsolateRole): boolean {
    return role === "reader" || role === "writer" && this.#options.rows !== undefined;
  }

  async prepare(version: Version): Promise<Disposable> {
    const isolates = await Promise.all(this.#rolesAhead.map((role) => this.#prepared(role, version)));
    // A reader loads while the writer still uses the database exclusively.
    isolates[1]?.open();
    return { [Symbol.dispose]: () => this.#waiting.end(isolates) };
  }

  get #rolesAhead(): readonly IsolateRole[] {
    return this.#options.isolateMemory?.sparing === true ? ["writer"] : ["writer", "reader"];
  }

  standBy(): void {
    if (this.#options.isolateMemory?.sparing === true) return;
    for (const role of this.#rolesAhead) {
      if (this.#waiting.find(role, this.#version) !== null) continue;
      this.#wait(role, this.#version, this.#freePlace());
    }
  }

  async start(role: IsolateRole, version: Version = this.#version): Promise<StartResult> {
    const waiting = this.#waiting.take(role, version);
    if (waiting === null) return await this.#start(role, { version });
    waiting.open();
    waiting.goOn();
    return await waiting.started;
  }

  useEnv(env: Readonly<Record<string, string>>): void {
    this.#env = env;
  }

  check(version: Version, bounds: CheckBounds): Promise<StartResult> {
    return this.#start("reader", { version, check: bounds });
  }

  /** A file name that is reused after its isolate: the runtime caches data by file path. */
  #freePlace(): string {
    for (let number = 1;; number++) {
      const place = join(this.#runDir, `code-${number}.js`);
      if (!this.#places.has(place)) return place;
    }
  }

  #wait(role: IsolateRole, version: Version, place: string | null = null): WaitingIsolate {
    if (place !== null) this.#places.add(place);
    const waiting = startWaiting({
      version,
      place,
      onGone: () => place !== null && this.#places.delete(place),
      launch: (version, options) => this.#start(role, { version, ...options }),
      put: (version, place) => this.#put(version, place),
    });
    this.#waiting.put(role, waiting);
    return waiting;
  }

  /** Returns a prestarted or new isolate, once it is connected. */
  async #prepared(role: IsolateRole, version: Version): Promise<WaitingIsolate> {
    let isolate = this.#waiting.find(role, version) ?? this.#wait(role, version);
    if (!await isolate.keepFor(version)) isolate = this.#wait(role, version);
    await isolate.connected;
    return isolate;
  }

  async #put(version: Version, place: string): Promise<Disposable> {
    // It may be removed once it is linked.
    using _held = await this.#options.versions.hold(version);
    await Deno.link(version.bundle, place);
    return { [Symbol.dispose]: () => Deno.removeSync(place) };
  }

  async #start(
    role: IsolateRole,
    { version, gate = null, check, onProcess = () => {} }: {
      readonly version: Version;
      readonly gate?: BootGate | null;
      readonly check?: CheckBounds;
      readonly onProcess?: (process: IsolateProcess) => void;
    },
  ): Promise<StartResult> {
    const name = `${role}-${++this.#started}`;
    const socketPath = join(this.#runDir, name);
    const progressPath = `${socketPath}.p`;
    const importMapPath = `${socketPath}.m`;
    const { dataDir, actionNet, settings, log, clock, entry = plainEntry, isolateMemory } = this.#options;
    const { tableNumbers, journal, follows = false, versions, rows = null } = this.#options;
    const { bundle, functions, authorFolder } = version;
    const authored = authorTexts(authorFolder);
    let resources: { listener?: Deno.Listener; progress?: Deno.FsFile; held?: Disposable } = {};
    try {
      const held = await versions.hold(version);
      resources = { held };
      await Deno.writeTextFile(importMapPath, isolateImportMap({ role, entry }));
      if (this.#disposed) throw new Error("The server is stopping");
      const progress = await Deno.open(progressPath, {
        read: true,
        write: true,
        createNew: true,
        mode: 0o600,
      });
      const listener = Deno.listen({ transport: "unix", path: socketPath });
      resources = { listener, progress, held };
      const databasePath = join(dataDir, "data.db");
      const child = this.#spawn({
        role,
        entry,
        dataDir,
        databasePath,
        bundle,
        socketPath,
        progressPath,
        actionNet,
        importMapPath,
        ...(isolateMemory && { memory: isolateMemory }),
      });
      const cacheBytes = role === "writer"
        ? isolateMemory?.writerCacheBytes
        : isolateMemory?.readerCacheBytes;
      const boot = (): Boot => ({
        type: "Boot",
        role,
        databasePath,
        bundle,
        functions,
        authorFolder,
        progressPath,
        env: role === "runner" ? { ...this.#env } : {},
        settings,
        ...(tableNumbers && { tableNumbers }),
        ...(rows !== null || follows ? { journal: "external" } : journal && { journal }),
        ...(follows && { follows }),
        ...(cacheBytes !== undefined && { cacheBytes }),
        ...(version.deployed && { version: version.hash }),
        ...(check && { check }),
        ...(gate !== null && this.#waits(role) && { waits: true }),
      });
      const process = new IsolateProcess({
        child,
        progress,
        progressPath,
        clock,
        log,
        authored,
        rows: role === "writer" ? rows : null,
        logOutput: (text) => log("warn", "Isolate output", { isolate: name, text: authored(text) }),
      });
      resources = { listener };
      this.#running.add(process);
      onProcess(process);
      this.census.started(process.pid, role);
      process.ended.then(({ cause }) => {
        this.#running.delete(process);
        held[Symbol.dispose]();
        this.census.ended(process.pid, cause);
      });
      const waits = this.#waits(role);
      return await process.boot(listener, { boot, gate, role, waits, ...(check && { check }) });
    } catch (error) {
      return { ok: false, broken: false, message: error instanceof Error ? error.message : String(error) };
    } finally {
      close(resources.listener);
      resources.held?.[Symbol.dispose]();
      await remove(socketPath);
      await remove(importMapPath);
      // Still ours only if no process has it.
      if (resources.progress !== undefined) {
        close(resources.progress);
        await remove(progressPath);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    this.#memoryWatch?.[Symbol.dispose]();
    this.#killAll();
    await Promise.all([...this.#running].map((process) => process.ended));
    globalThis.removeEventListener("unload", this.#killAll);
    await remove(this.#runDir);
  }

  #spawn(paths: IsolatePaths): Deno.ChildProcess {
    const { executable, args, env } = this.#options.command(paths);
    return new Deno.Command(executable, {
      args: [...args],
      env,
      clearEnv: true,
      cwd: this.#runDir,
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
  }
}

/** One child process from start to end. */
class IsolateProcess implements Isolate {
  readonly #child: Deno.ChildProcess;
  readonly #progressFile: Deno.FsFile;
  readonly #progressPath: string;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #authored: (text: string) => string;
  readonly #rows: CommitAppender | null;
  readonly #stderr: IsolateStderr;
  readonly #progressBytes = new Uint8Array(PROGRESS_BYTES);
  readonly #ended = Promise.withResolvers<Death>();
  /** Last recorded progress. Set when the file is closed. */
  #lastProgress: Progress | null | undefined;
  #sender: FrameSender | null = null;
  #conn: Deno.Conn | null = null;
  /** Called at most once when the app is loaded. `null` if not needed. */
  #onLoaded: (() => void) | null = null;
  #ready: Ready | null = null;
  #onFrame: ((frame: IsolateFrame) => void) | null = null;
  /** Whether the host is ending the isolate on purpose. */
  #isClosing = false;
  /** The protocol violation for which the host ends it. */
  #violation: string | null = null;

  constructor(options: {
    readonly child: Deno.ChildProcess;
    readonly progress: Deno.FsFile;
    readonly progressPath: string;
    readonly clock: Clock;
    readonly log: Log;
    /** Rewrites paths of app files to the author's. */
    readonly authored: (text: string) => string;
    readonly rows: CommitAppender | null;
    readonly logOutput: (text: string) => void;
  }) {
    this.#child = options.child;
    this.#progressFile = options.progress;
    this.#progressPath = options.progressPath;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#authored = options.authored;
    this.#rows = options.rows;
    this.#stderr = new IsolateStderr(options.child.stderr, {
      now: () => options.clock.now(),
      log: options.logOutput,
    });
  }

  get pid(): number {
    return this.#child.pid;
  }

  get ready(): Ready {
    if (this.#ready === null) throw new Error("The isolate is not ready");
    return this.#ready;
  }

  get ended(): Promise<Death> {
    return this.#ended.promise;
  }

  /**
   * Waits for its connection and answer, and from then on for its end. Loading the app has a time limit. Schema migration has
   * none, even if a refinement in the schema never ends: its duration depends on data and disk, and a killed isolate would
   * start over each time.
   */
  async boot(
    listener: Deno.Listener,
    { boot, gate, check, role, waits }: {
      readonly boot: () => Boot;
      readonly gate: BootGate | null;
      /** Whether it waits for `SchemaReady`. */
      readonly waits: boolean;
    } & Pick<Boot, "role" | "check">,
  ): Promise<StartResult> {
    const answer = Promise.withResolvers<StartResult>();
    const onAnswer = (result: StartResult) => {
      this.#onLoaded = null;
      answer.resolve(result);
    };
    const tooSlow = () =>
      onAnswer({
        ok: false,
        broken: true,
        message: `The app took longer than ${isolateLimits.startMs / 1000} s to load: ` +
          "at the top of one of its files, or of a package, is an await that does not settle or a loop that does not end",
      });
    let slow = this.#clock.after(isolateLimits.startMs, tooSlow);
    const held = gate === null ? null : async () => {
      // Waiting time does not count.
      slow.cancel();
      gate.connected();
      await gate.opened;
      slow = this.#clock.after(isolateLimits.startMs, tooSlow);
    };
    let fitted = (_ok: boolean) => {};
    if (check !== undefined) {
      this.#onLoaded = () => {
        slow.cancel();
        const late = this.#clock.after(check.msMax, () => onAnswer(looksTooLong(check)));
        fitted = () => late.cancel();
      };
    } else if (role === "writer") {
      this.#onLoaded = () => {
        slow.cancel();
        gate?.loaded();
        void Promise.resolve(gate?.fitted).then(() => fitted = this.#watchMigration());
      };
    } else if (role === "reader" && gate !== null) {
      this.#onLoaded = () => {
        slow.cancel();
        gate.loaded();
        void gate.fitted.then(() => slow = this.#clock.after(isolateLimits.startMs, tooSlow));
      };
    }
    const fittedSaid = waits ? gate?.fitted ?? null : null;
    this.#live(listener, { boot, held, fitted: fittedSaid, onAnswer });
    const result = await answer.promise;
    slow.cancel();
    fitted(result.ok);
    if (!result.ok) {
      this.kill();
      await this.ended;
    }
    return result;
  }

  receive(onFrame: (frame: IsolateFrame) => void): void {
    this.#onFrame = onFrame;
  }

  send(message: ToIsolate, segments: readonly string[] = []): void {
    this.#leave(this.#sender?.send(message, segments));
  }

  sendBytes(call: number, bytes: Uint8Array): void {
    this.#leave(this.#sender?.sendBytes(call, bytes));
  }

  sendText(text: string): void {
    this.#leave(this.#sender?.sendText(text));
  }

  progress(): Progress | null {
    if (this.#lastProgress !== undefined) return this.#lastProgress;
    this.#progressFile.seekSync(0, Deno.SeekMode.Start);
    const read = this.#progressFile.readSync(this.#progressBytes);
    return read === PROGRESS_BYTES ? parseProgress(this.#progressBytes) : null;
  }

  kill(): void {
    this.#isClosing = true;
    kill(this.#child);
  }

  end(why: string): void {
    this.#violation ??= why;
    kill(this.#child);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    close(this.#conn);
    const late = this.#clock.after(CLOSE_MS, () => this.kill());
    await this.ended;
    late.cancel();
  }

  /** Logs a long schema migration. Call the returned function when it ends. */
  #watchMigration(): (ok: boolean) => void {
    const since = this.#clock.now();
    let logged = false;
    const timer = this.#clock.after(isolateLimits.migrationLogMs, () => {
      logged = true;
      this.#log(
        "info",
        "Migrating tables and indexes to the app's schema: this takes a while with much data, " +
          "and starts over if the server is stopped before the end",
      );
    });
    return (ok) => {
      timer.cancel();
      if (!logged || !ok) return;
      const seconds = Math.round((this.#clock.now() - since) / 1000);
      this.#log("info", "Tables and indexes are migrated to the app's schema", { seconds });
    };
  }

  /** The isolate's whole life. Calls `onAnswer` with the result of the boot, and settles `ended` when everything is closed. */
  async #live(
    listener: Deno.Listener,
    { boot, held, fitted, onAnswer }: {
      readonly boot: () => Boot;
      /** Waits for what has to precede Boot. */
      readonly held: (() => Promise<void>) | null;
      /** Time to send `SchemaReady`. */
      readonly fitted: Promise<void> | null;
      readonly onAnswer: (result: StartResult) => void;
    },
  ): Promise<void> {
    const status = this.#child.status;
    const conn = await Promise.race([listener.accept(), status.then(() => null)]).catch(() => null);
    // Accepts exactly one connection.
    close(listener);
    this.#conn = conn;
    if (conn !== null) {
      this.#sender = new FrameSender(conn);
      if (held !== null) await Promise.race([held(), status]);
      this.send(boot());
      void fitted?.then(() => this.send({ type: "SchemaReady" }));
      await this.#readAll(conn, onAnswer);
      close(conn);
      // It has no purpose without its socket. If it lingers it is ended.
      if (!this.#isClosing) await this.#endSoon(status);
    }
    const { code, signal } = await status;
    await this.#stderr.ended;
    const death = this.#death(code, signal);
    this.#lastProgress = death.progress;
    this.#progressFile.close();
    await remove(this.#progressPath);
    onAnswer({ ok: false, broken: false, message: `The isolate ended while it started: ${death.detail}` });
    this.#ended.resolve(death);
  }

  async #readAll(conn: Deno.Conn, onAnswer: (result: StartResult) => void): Promise<void> {
    try {
      for await (const { message, segments, bytes } of readFrames<FromIsolate>(conn)) {
        switch (message.type) {
          case "Loaded": {
            const onLoaded = this.#onLoaded;
            if (onLoaded === null) throw new TypeError("Loaded came twice or out of turn");
            this.#onLoaded = null;
            onLoaded();
            break;
          }
          case "Ready":
            if (this.#ready !== null) throw new TypeError("Ready came twice");
            this.#ready = message;
            if (this.#rows === null) onAnswer({ ok: true, isolate: this });
            else void this.#beginWith(this.#rows, onAnswer);
            break;
          case "Broken":
            onAnswer({ ok: false, broken: true, message: message.message });
            break;
          case "AppendRow":
            void this.#appendRow(message, segments);
            break;
          default:
            if (this.#onFrame === null) throw new TypeError(`${message.type} came before its time`);
            this.#onFrame({ message, segments, ...(bytes && { bytes }) } satisfies WireFrame<typeof message>);
        }
      }
    } catch (error) {
      // The socket was closed by the host, or its other end died.
      if (
        this.#isClosing || error instanceof Deno.errors.BadResource ||
        error instanceof Deno.errors.ConnectionReset
      ) return;
      if (error instanceof Deno.errors.Interrupted) return;
      this.#violation = error instanceof Error ? error.message : String(error);
      kill(this.#child);
    }
  }

  /** A writer that lacks a row of the log of a cluster must not commit another in its place. */
  async #beginWith(rows: CommitAppender, onAnswer: (result: StartResult) => void): Promise<void> {
    const { reached } = this.ready;
    const refused = reached === undefined
      ? { message: "It does not say where its history stands" }
      : await rows.begins(reached);
    onAnswer(
      refused === null ? { ok: true, isolate: this } : { ok: false, broken: false, message: refused.message },
    );
  }

  async #appendRow({ row }: AppendRow, [body]: readonly string[]): Promise<void> {
    if (this.#rows === null || (row !== null && body === undefined)) {
      return this.end("it has no log to append rows to");
    }
    if (row === null || body === undefined) {
      return this.send({ type: "RowAppended", seq: null, refused: await this.#rows.append(null) });
    }
    const [seq, tsBefore, ts, at, sum] = row;
    const refused = await this.#rows.append({ seq, tsBefore, ts, at, sum, body });
    this.send({ type: "RowAppended", seq, refused });
  }

  async #endSoon(status: Promise<Deno.CommandStatus>): Promise<void> {
    const late = this.#clock.after(CLOSE_MS / 4, () => {
      this.#violation ??= "it closed its socket";
      kill(this.#child);
    });
    await status;
    late.cancel();
  }

  #death(code: number, signal: Deno.Signal | null): Death {
    const progress = this.progress();
    if (this.#violation !== null) return { cause: "crashed", detail: this.#violation, progress };
    if (this.#isClosing) return { cause: "asked", detail: "ended by the server", progress };
    if (signal === "SIGKILL") return { cause: "killed", detail: "killed from outside", progress };
    const summary = this.#authored(this.#stderr.summary);
    if (OUT_OF_MEMORY.test(this.#stderr.text)) {
      return { cause: "crashed", detail: "out of memory", progress };
    }
    const end = signal ?? `exit code ${code}`;
    return { cause: "crashed", detail: summary === "" ? end : `${end}: ${summary}`, progress };
  }

  #leave(sent: Promise<void> | undefined): void {
    // A broken socket belongs to an isolate that is ending, which `ended` reports.
    sent?.catch(() => {});
  }
}

/** Removes files of killed servers, unless another server uses the data folder. */
async function removeRunDirs(dataDir: string): Promise<void> {
  for await (const entry of Deno.readDir(dataDir)) {
    if (entry.isDirectory && entry.name.startsWith(RUN_DIR_PREFIX)) {
      await Deno.remove(join(dataDir, entry.name), { recursive: true });
    }
  }
}

/** Creates the folder of sockets and progress files: in the data folder, or elsewhere if its path is too long. */
async function makeRunDir(dataDir: string): Promise<string> {
  const deep = dataDir.length + RUN_DIR_PREFIX.length + 2 * FILE_NAME_CHARS > SOCKET_PATH_CHARS_MAX;
  const runDir = await Deno.makeTempDir({ prefix: RUN_DIR_PREFIX, ...(deep ? {} : { dir: dataDir }) });
  await Deno.chmod(runDir, 0o700);
  return await Deno.realPath(runDir);
}

const RUN_DIR_PREFIX = "run-";

async function remove(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

function kill(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch {
    // Already ended.
  }
}

function close(resource: { close(): void } | null | undefined): void {
  try {
    resource?.close();
  } catch {
    // Already closed by the other end.
  }
}

function looksTooLong({ msMax }: CheckBounds): StartResult {
  const message = `Checking all documents took longer than ${msMax / 1000} s: there are too many of them, ` +
    "or a refinement in the schema does not end";
  return { ok: false, broken: true, message };
}
