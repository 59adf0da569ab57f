/** What the isolates of a server are started with. */
import type { Log } from "../../kit/log.ts";
import type { Version, VersionSource, VersionStore } from "../versions/version_store.ts";
import type { Heard, LeaderPort } from "./leader_port.ts";
import type { Timeouts } from "./outcomes.ts";
import type { IsolateMemory } from "./process/isolate_memory.ts";
import type { RunObserver } from "./run_observer.ts";
import type { RowKeeper } from "./writer/row_keeper.ts";

export interface IsolateHostOptions {
  /** Folder of `data.db`; it must exist. */
  readonly dataDir: string;
  /** The app's functions as their author has them, or the hash of a version in the data folder. */
  readonly code: VersionSource | { readonly version: string };
  /** Whether this version of the code is of no use to anybody later: it is removed at the end unless it was there. */
  readonly passing?: boolean;
  /** What actions see as `ctx.env`. */
  readonly env: Readonly<Record<string, string>>;
  /** Hosts that actions may reach; `null` or absent for any. */
  readonly actionNet?: readonly string[] | null;
  /** Module that runs an isolate; one without functions of the service when absent. */
  readonly entry?: URL;
  /** What functions of the service have to know of the server, by feature; JSON. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Numbers that tables get which the database does not have yet, so that ids from elsewhere are theirs. */
  readonly tableNumbers?: Readonly<Record<string, number>>;
  /** Actions of this turn, and what they call, have runners of their own, which `endApart` ends. */
  readonly apart?: string;
  /** Has the writer keep a journal, of which so many bytes may wait. */
  readonly journal?: { readonly pendingBytesMax: number };
  /** The commits are made elsewhere, and come by `applyRows`; mutations are refused without a leader. */
  readonly follows?: boolean;
  /** The database is the leader's, which is asked for all that writes, and tells of commits by `hear`. */
  readonly heard?: Heard;
  /** Where mutations run when they do not run here. */
  readonly leader?: LeaderPort;
  /** The history is kept elsewhere: what the writer commits has to be there before. */
  readonly rows?: RowKeeper;
  /** For a server that serves what others name: rows name versions, which it gets from them. */
  readonly bring?: BringVersion;
  /** Told of every run here; nobody has to be. */
  readonly observer?: RunObserver;
  /** What isolates may use of the machine's memory. */
  readonly memory?: IsolateMemory;
  /** How long queries and mutations may run; as the contract says when absent. */
  readonly timeouts?: Timeouts;
  /** Processors that readers can keep busy; those of the machine when absent. */
  readonly cores?: number;
  /** Whether another server uses the data folder until `begin`: all is made ready by then but what needs the database. */
  readonly waits?: boolean;
  readonly log: Log;
}

/** Has a version in the store that somebody else has named. Rejects with a `VersionError` when this server cannot serve it. */
export type BringVersion = (hash: string | null, versions: VersionStore) => Promise<Version>;
