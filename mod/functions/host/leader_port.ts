/** Where the commits of a host come from, and what a host without a writer of its own needs from its leader. */
import type { FunctionCall, FunctionInfo, MutationAnswer, MutationCall } from "../host_port.ts";
import type { Outcome } from "../outcome.ts";
import type { WireCron, WireRoute } from "../wire/messages.ts";
import type { CommitAppender } from "./writer/commit_appender.ts";

/** Runs mutations, and actions that do not run locally. */
export interface LeaderPort {
  /** Never rejects. */
  mutate(call: MutationCall): Promise<MutationAnswer>;
  /** Absent if actions run in this process. Never rejects. */
  act?(call: FunctionCall): Promise<ActionAnswer>;
}

/** An action's outcome, and the newest commit that its caller may have observed. */
export interface ActionAnswer {
  readonly outcome: Outcome;
  readonly ts: number;
}

export interface ServedApp {
  /** Hash of its code version. */
  readonly version: string;
  /** Functions of the app and the service, including actions of main. */
  readonly functions: readonly (readonly [udfPath: string, info: FunctionInfo])[];
  readonly crons: readonly WireCron[];
  readonly routes: readonly WireRoute[];
}

/**
 * `writer`: mutations run here. With an external journal, a row is stored there before its group is committed.
 * `rows`: journal rows of another server are applied through `IsolateHost.rows`. Mutations go to the leader, or are refused.
 * `leader`: another process commits to the same database, and reports its commits through `IsolateHost.commits`.
 */
export type CommitSource =
  | { readonly from: "writer"; readonly rows?: CommitAppender }
  | { readonly from: "rows"; readonly leader?: LeaderPort }
  | {
    readonly from: "leader";
    readonly leader: LeaderPort;
    readonly app: ServedApp;
    readonly ts: number;
  };

/** Other processes that read the same database. They follow code changes. */
export interface PeerReaders {
  /** Resolves when queries are paused and running ones have their snapshots. Disconnects slow processes. Never rejects. */
  hold(): Promise<void>;
  /** Switches them to another app. `null` keeps the current one. */
  release(app: ServedApp | null): void;
}
