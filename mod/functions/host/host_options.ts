/** Options of the isolates of a server. */
import type { Log } from "../../kit/log.ts";
import type { Version, VersionSource, VersionStore } from "../versions/version_store.ts";
import type { CommitSource } from "./leader_port.ts";
import type { Timeouts } from "./outcomes.ts";
import type { IsolateMemory } from "./process/isolate_memory.ts";
import type { RunObserver } from "./run_observer.ts";

export interface IsolateHostOptions {
  /** Folder of `data.db`. Must exist. */
  readonly dataDir: string;
  /** The author's functions, or the hash of a version in the data folder. */
  readonly code: VersionSource | { readonly version: string };
  /** Whether the version is temporary: it is removed at the end unless it existed before. */
  readonly temporary?: boolean;
  /** `ctx.env` of actions. */
  readonly env: Readonly<Record<string, string>>;
  /** Hosts that actions may connect to. `null` or absent for any. */
  readonly actionNet?: readonly string[] | null;
  /** Entry module of isolates. Without functions of the service if absent. */
  readonly entry?: URL;
  /** Server settings for functions of the service, by feature. JSON. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Numbers of tables that the database does not have yet, so that ids from elsewhere belong to them. */
  readonly tableNumbers?: Readonly<Record<string, number>>;
  /** Actions with this queue key, and what they call, get runners of their own, which `endDedicatedRuns` ends. */
  readonly dedicatedQueue?: string;
  /** Enables the writer's journal, with a limit for unshipped bytes. */
  readonly journal?: { readonly pendingBytesMax: number };
  /** Defaults to an own writer. */
  readonly commitSource?: CommitSource;
  /** Fetches versions named by rows of other servers. */
  readonly fetchVersion?: FetchVersion;
  /** Observer of all runs. Optional. */
  readonly observer?: RunObserver;
  /** Memory limits of isolates. */
  readonly memory?: IsolateMemory;
  /** Time limits of queries and mutations. Defaults to the contract's. */
  readonly timeouts?: Timeouts;
  /** Processors available to readers. Defaults to those of the machine. */
  readonly cores?: number;
  /** Whether another server uses the data folder until `begin`. Everything that does not need the database is prepared. */
  readonly waits?: boolean;
  readonly log: Log;
}

/** Fetches a version into the store. Rejects with a `VersionError` if this server cannot serve it. */
export type FetchVersion = (hash: string | null, versions: VersionStore) => Promise<Version>;
