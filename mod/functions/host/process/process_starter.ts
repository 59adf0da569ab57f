/** Starts isolates as child processes: their files, prestarted ones, and the end of all of them. */
import { join } from "node:path";
import { isDiskFull } from "../../../kit/durable_files.ts";
import type { Log } from "../../../kit/log.ts";
import type { Boot, CheckBounds, IsolateRole } from "../../wire/messages.ts";
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
import type { IsolateStarter, StartResult } from "./isolate.ts";
import { close, IsolateProcess, ProgressReader, remove } from "./isolate_process.ts";
import { machineMemory, type MemoryReader, MemoryWatch } from "./memory_watch.ts";
import {
  type BootGate,
  PrestartedIsolates,
  startWaiting,
  type WaitingIsolate,
} from "./prestarted_isolates.ts";

/** Longest unix socket path supported by all systems. */
const SOCKET_PATH_CHARS_MAX = 100;
/** Length of `/writer-123456`. */
const FILE_NAME_CHARS = 16;
const RUN_DIR_PREFIX = "run-";

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
  /** Entry module of writers and readers. Default: the entry of runners, which has no functions of the service. */
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

interface StartOptions {
  readonly version: Version;
  readonly gate?: BootGate | null;
  readonly check?: CheckBounds;
  readonly adHocQuery?: string;
  readonly onProcess?: (process: IsolateProcess) => void;
}

/** Resources that a start releases, unless its process owns them. */
interface StartResources {
  readonly held?: Disposable;
  readonly progressPath?: string;
  readonly progress?: ProgressReader;
  readonly listener?: Deno.Listener;
}

/** Starts isolates. Disposal ends all of them and removes their files. */
export class ProcessStarter implements IsolateStarter, AsyncDisposable {
  readonly isolateStats = new IsolateStats();
  readonly #options: ProcessStarterOptions;
  /** A folder with access for this user only: processes that can reach its sockets are trusted. */
  readonly #runDir: string;
  readonly #running = new Map<IsolateProcess, IsolateRole>();
  readonly #starts = new Set<Promise<StartResult>>();
  readonly #waiting = new PrestartedIsolates();
  /** Resolves when the files of the first isolate of each role exist: they can then start while the disk is full. */
  #allocated: Promise<void> | null = null;
  /** Progress files without an isolate. */
  #progressPaths: string[] = [];
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
  readonly #killAll = () => this.#running.forEach((_, process) => process.kill());

  private constructor(options: ProcessStarterOptions, runDir: string) {
    this.#options = options;
    this.#runDir = runDir;
    globalThis.addEventListener("unload", this.#killAll);
    this.#version = options.version;
    this.#env = options.env;
    const { memory: read = machineMemory, clock, isolateMemory: { dataMiB } = usualMemory } = options;
    this.#memoryWatch = read === null
      ? null
      : new MemoryWatch({ read, clock, isolates: () => this.#running.keys(), dataMiB });
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
    waiting.proceed();
    return await waiting.started;
  }

  useEnv(env: Readonly<Record<string, string>>): void {
    this.#env = env;
  }

  check(version: Version, bounds: CheckBounds): Promise<StartResult> {
    return this.#start("reader", { version, check: bounds });
  }

  startAdHoc(version: Version, code: string): Promise<StartResult> {
    return this.#start("reader", { version, adHocQuery: code });
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
      onExit: () => place !== null && this.#places.delete(place),
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

  /** Runners do not run functions of the service: they call them through main. */
  #entry(role: IsolateRole): URL {
    return role === "runner" ? plainEntry : this.#options.entry ?? plainEntry;
  }

  async #allocate(): Promise<void> {
    const progressPaths: string[] = [];
    try {
      for (const role of ["writer", "reader", "runner"] as const) {
        await Deno.writeTextFile(
          join(this.#runDir, `${role}.m`),
          isolateImportMap({ role, entry: this.#entry(role) }),
        );
        const progressPath = join(this.#runDir, `${progressPaths.length + 1}.p`);
        (await ProgressReader.open(progressPath)).close();
        progressPaths.push(progressPath);
      }
      this.#progressPaths = progressPaths;
    } catch (error) {
      this.#allocated = null;
      throw error;
    }
  }

  #start(role: IsolateRole, options: StartOptions): Promise<StartResult> {
    const start = this.#startProcess(role, options);
    this.#starts.add(start);
    const onEnd = () => this.#starts.delete(start);
    start.then(onEnd, onEnd);
    return start;
  }

  async #startProcess(
    role: IsolateRole,
    { version, gate = null, check, adHocQuery, onProcess = () => {} }: StartOptions,
  ): Promise<StartResult> {
    const name = `${role}-${++this.#started}`;
    const socketPath = join(this.#runDir, name);
    const { dataDir, actionNet, settings, log, clock, isolateMemory } = this.#options;
    const { tableNumbers, journal, follows = false, versions, rows = null } = this.#options;
    const { bundle, functions, authorFolder } = version;
    const authored = authorTexts(authorFolder);
    let resources: StartResources = {};
    try {
      const held = await versions.hold(version);
      resources = { held };
      await (this.#allocated ??= this.#allocate());
      const progressPath = this.#progressPaths.shift() ?? `${socketPath}.p`;
      resources = { held, progressPath };
      const progress = await ProgressReader.open(progressPath);
      resources = { held, progressPath, progress };
      if (this.#disposed) throw new Error("The server is stopping");
      const listener = Deno.listen({ transport: "unix", path: socketPath });
      resources = { held, progressPath, progress, listener };
      const databasePath = join(dataDir, "data.db");
      const child = this.#spawn({
        role,
        entry: this.#entry(role),
        dataDir,
        databasePath,
        bundle,
        socketPath,
        progressPath,
        actionNet,
        importMapPath: join(this.#runDir, `${role}.m`),
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
        // Keys, which no module of a runner reads.
        settings: role === "runner" ? {} : settings,
        ...(tableNumbers && { tableNumbers }),
        ...(rows !== null || follows ? { journal: "external" } : journal && { journal }),
        ...(follows && { follows }),
        ...(cacheBytes !== undefined && { cacheBytes }),
        ...(version.deployed && { version: version.hash }),
        ...(check && { check }),
        ...(adHocQuery !== undefined && { adHocQuery }),
        ...(gate !== null && this.#waits(role) && { waits: true }),
      });
      const process = new IsolateProcess({
        child,
        progress,
        clock,
        log,
        authored,
        rows: role === "writer" ? rows : null,
        logOutput: (text) => log("warn", "Isolate output", { isolate: name, text: authored(text) }),
      });
      resources = { listener };
      this.#running.set(process, role);
      onProcess(process);
      this.isolateStats.started(process.pid, role);
      process.ended.then(({ cause }) => {
        this.#running.delete(process);
        this.#progressPaths.push(progressPath);
        held[Symbol.dispose]();
        this.isolateStats.ended(process.pid, cause);
      });
      const waits = this.#waits(role);
      return await process.boot(listener, { boot, gate, role, waits, ...(check && { check }) });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return { ok: false, broken: false, message, ...(isDiskFull(error) && { code: "disk_full" }) };
    } finally {
      close(resources.listener);
      resources.held?.[Symbol.dispose]();
      resources.progress?.close();
      if (resources.progressPath !== undefined) this.#progressPaths.push(resources.progressPath);
      await remove(socketPath);
    }
  }

  async endOthers(): Promise<void> {
    this.#disposed = true;
    const others = [...this.#running].flatMap(([process, role]) =>
      role === "writer" && process.isReady ? [] : [process]
    );
    for (const process of others) process.kill();
    await Promise.all(others.map((process) => process.ended));
    await Promise.allSettled(this.#starts);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    this.#memoryWatch?.[Symbol.dispose]();
    this.#killAll();
    await Promise.all(Array.from(this.#running.keys(), (process) => process.ended));
    // They still remove their files.
    await Promise.allSettled(this.#starts);
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
