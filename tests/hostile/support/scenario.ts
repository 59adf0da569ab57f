/** A row of the hostile suite: an attack, and its allowed cost for one ordinary user. */
import type { ServerProcess } from "../../support/processes/server_process.ts";
import type { Served, Waits } from "./bystander.ts";

/** Waits of the bystander in milliseconds. */
export interface MayWait {
  /** For the answer to a query nobody has asked before. */
  readonly queryMs: number;
  /**
   * For the same at 99 of 100 moments, on a machine on which he waits next to nothing beside programs that take as much of
   * the processors; where he waits longer there, several times that.
   */
  readonly queryP99Ms?: number;
  /** For the answer to a mutation. */
  readonly mutationMs: number;
  /** For the Transition that shows the mutation, from its sending; as `mutationMs` plus `queryMs` when left out. */
  readonly shownMs?: number;
}

export interface World {
  readonly server: ServerProcess;
  /** Lines the server printed since the scenario began. */
  readonly log: readonly string[];
  /** Folder of the server's data. */
  readonly dataDir: string;
  /** Whether attacks take the time that figures need; short otherwise. */
  readonly isFull: boolean;
  /** Answers that the bystander got since the scenario began. */
  served(): Promise<Served>;
  /** A new account's access token. */
  signUp(): Promise<string>;
  /** Resolves when a line of the log matches, also one printed since the scenario began. Throws after a minute. */
  logged(pattern: RegExp): Promise<string>;
}

/** Measurements of an attack about itself. */
export interface Measured {
  readonly figure: string;
  readonly mayWait: MayWait;
}

export interface Scenario {
  /** The rule of the list that it proves. */
  readonly rule: string;
  readonly name: string;
  /** Its effect without a defense, in a few words. */
  readonly before?: string;
  /**
   * Attacks and asserts what the rule says by events and their order, not by durations. Gives the row's figure in a few words, and
   * what the bystander may wait when that follows from what was measured: how long one call took on this machine. The
   * bystander goes about his business from before its first line to after its last.
   */
  readonly attack: (world: World) => Promise<string | Measured>;
  /** The bystander's maximum wait in the benchmark; `null` for a row that measures it, or is not about waiting. */
  readonly mayWait: MayWait | null;
  /** Whether what he waits here is what he may wait a few times over elsewhere: see {@linkcode MayWait}. */
  readonly isControl?: boolean;
  /** Whether the server may refuse or lose some of his calls, which is not so unless said here. */
  readonly mayFail?: boolean;
  /** Flags of `serve` that the row needs. Rows with equal flags share a server, one after another. */
  readonly flags?: readonly string[];
  /** Whether it gets a server and a data folder of its own. */
  readonly alone?: boolean;
  /** Too long for `deno task test`. */
  readonly long?: boolean;
}

/** A row of the table. */
export interface Result {
  readonly scenario: Scenario;
  readonly waits: Waits | null;
  readonly figure: string;
  readonly ms: number;
}
