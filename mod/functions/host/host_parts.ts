/** Dependencies of a host: isolate starter, clock and code. Replaced in tests. */
import { type Clock, steadyClock } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import { AdaptiveSpinner } from "../../kit/adaptive_spinner.ts";
import { isolateLimits } from "../limits.ts";
import { type Version, type VersionSource, VersionStore } from "../versions/version_store.ts";
import type { FetchVersion, IsolateHostOptions } from "./host_options.ts";
import type { CommitSource } from "./leader_port.ts";
import type { Timeouts } from "./outcomes.ts";
import { isolateCommand } from "./process/command.ts";
import type { IsolateStarter } from "./process/isolate.ts";
import type { IsolateStats } from "./process/isolate_stats.ts";
import { ProcessStarter } from "./process/process_starter.ts";
import type { RunObserver } from "./run_observer.ts";

export interface HostParts {
  readonly starter: IsolateStarter & AsyncDisposable;
  readonly clock: Clock;
  readonly log: Log;
  readonly batchPrefix: string;
  readonly cores: number;
  /** Maximum readers. Defaults to `isolateLimits.readersMax`. */
  readonly readersMax?: number;
  /** Whether to keep a spare reader while queries arrive. */
  readonly spareReader?: boolean;
  /** Busy-waits briefly for the writer. Without it main sleeps. */
  readonly spinner?: AdaptiveSpinner;
  readonly isolateStats?: IsolateStats;
  readonly observer?: RunObserver;
  readonly timeouts?: Timeouts;
  /** Defaults to an own writer. */
  readonly commitSource?: CommitSource;
  readonly dedicatedQueue?: string;
  /** The code that isolates load. Without it, no other code can be loaded. */
  readonly code?: HostCode;
}

/** The versions of a data folder, and the one that is loaded first. */
export interface HostCode {
  readonly versions: VersionStore;
  readonly version: Version;
  /** Source of {@linkcode version} for reloading. `null` if it cannot be reloaded. */
  readonly source: VersionSource | null;
  readonly temporary?: boolean;
  /** Fetches versions named by rows of other servers. Rows are ignored without it. `null` names no version. */
  readonly fetchVersion?: FetchVersion;
}

/** Creates the parts of a running server. Rejects if there is no code to serve. */
export async function openHostParts(options: IsolateHostOptions): Promise<HostParts> {
  const { commitSource, dedicatedQueue, observer, timeouts, memory } = options;
  const { log, temporary, fetchVersion } = options;
  const dataDir = await Deno.realPath(options.dataDir);
  const versions = await VersionStore.open(dataDir);
  const source = "functionsDir" in options.code ? options.code : null;
  const version = await firstVersion(options, versions);
  const starter = await createStarter({ ...options, dataDir }, { versions, version });
  // After a takeover, clients connect immediately. Otherwise the first client or query starts a reader.
  if (options.waits === true) await Promise.all([starter.warm("writer"), starter.warm("reader")]);
  const { cores = navigator.hardwareConcurrency } = options;
  return {
    starter,
    clock: steadyClock,
    log,
    batchPrefix: crypto.randomUUID(),
    cores,
    spinner: new AdaptiveSpinner(isolateLimits.spinMs),
    isolateStats: starter.isolateStats,
    ...(observer && { observer }),
    ...(timeouts && { timeouts }),
    ...(memory && { readersMax: memory.readersMax }),
    spareReader: memory?.sparing !== true,
    ...(commitSource && { commitSource }),
    ...(dedicatedQueue !== undefined && { dedicatedQueue }),
    code: {
      versions,
      version,
      source,
      ...(temporary && { temporary }),
      ...(fetchVersion && { fetchVersion }),
    },
  };
}

async function firstVersion(
  { code, fetchVersion }: IsolateHostOptions,
  versions: VersionStore,
): Promise<Version> {
  if (!("version" in code)) return await versions.make(code);
  return fetchVersion === undefined
    ? await versions.get(code.version)
    : await fetchVersion(code.version, versions);
}

async function createStarter(
  options: IsolateHostOptions,
  code: Pick<HostCode, "versions" | "version">,
): Promise<ProcessStarter> {
  const { dataDir, env, actionNet = null, entry, settings = {}, tableNumbers, journal } = options;
  const { commitSource: source = { from: "writer" }, memory, waits = false, log } = options;
  return await ProcessStarter.create({
    dataDir,
    ...code,
    env,
    actionNet,
    settings,
    ...(entry && { entry }),
    ...(tableNumbers && { tableNumbers }),
    ...(journal && { journal }),
    follows: source.from === "rows",
    ...(source.from === "writer" && source.rows && { rows: source.rows }),
    command: isolateCommand,
    ...(memory && { isolateMemory: memory }),
    log,
    clock: steadyClock,
    ...((waits || source.from === "leader") && { shared: true }),
  });
}
