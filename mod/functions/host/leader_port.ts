/** Data and calls that a host without a writer of its own needs from the server that has one. */
import type { FunctionCall, FunctionInfo, MutationAnswer, MutationCall } from "../host_port.ts";
import type { Outcome } from "../outcome.ts";
import type { WireCron, WireRoute } from "../wire/messages.ts";

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

/** The app served by the leader. */
export interface ServedApp {
  /** Hash of its code version. */
  readonly version: string;
  /** Functions of the app and the service, including actions of main. */
  readonly functions: readonly (readonly [udfPath: string, info: FunctionInfo])[];
  readonly crons: readonly WireCron[];
  readonly routes: readonly WireRoute[];
}

/** Initial state of a host that receives commits. */
export interface Heard {
  readonly app: ServedApp;
  /** ts of the newest commit that it already has. */
  readonly ts: number;
}

/** Other processes that read the same database. They follow code changes. */
export interface Companions {
  /** Resolves when their queries are paused and running ones have their snapshots, or the processes are given up. Never rejects. */
  hold(): Promise<void>;
  /** Switches them to another app. `null` keeps the current one. */
  release(app: ServedApp | null): void;
}
