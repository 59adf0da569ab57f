/** What a host without a writer of its own asks of the server that has one, and what it has to know of its app. */
import type { FunctionCall, FunctionInfo, MutationAnswer, MutationCall } from "../host_port.ts";
import type { Outcome } from "../outcome.ts";
import type { WireCron, WireRoute } from "../wire/messages.ts";

/** Where mutations run, and actions unless they run here. */
export interface LeaderPort {
  /** Never rejects. */
  mutate(call: MutationCall): Promise<MutationAnswer>;
  /** Absent where actions run in this process and only what they write goes to the leader. Never rejects. */
  act?(call: FunctionCall): Promise<ActionAnswer>;
}

/** How an action ended, and the commit up to which its caller may have seen what it wrote. */
export interface ActionAnswer {
  readonly outcome: Outcome;
  readonly ts: number;
}

/** The app as the leader serves it. */
export interface ServedApp {
  /** Hash of the version of its code. */
  readonly version: string;
  /** The functions of the app and of the service, actions of main included. */
  readonly functions: readonly (readonly [udfPath: string, info: FunctionInfo])[];
  readonly crons: readonly WireCron[];
  readonly routes: readonly WireRoute[];
}

/** Where a host begins that is told of commits. */
export interface Heard {
  readonly app: ServedApp;
  /** ts of the newest commit that it does not have to be told of. */
  readonly ts: number;
}

/** Processes that read the same database: they follow when the code is exchanged. */
export interface Companions {
  /** Resolves when their queries wait, those that run have their snapshots, or they are given up. Never rejects. */
  hold(): Promise<void>;
  /** The app is another one from now on; `null`: it is as it was. */
  release(app: ServedApp | null): void;
}
