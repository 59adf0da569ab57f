/** A row of the hostile suite: an attack, and the latency that it may cause for an ordinary user. */
import type { ServerProcess } from "../../support/processes/server_process.ts";
import type { Served, Waits } from "./bystander.ts";

/** Maximum latencies of the bystander in milliseconds. */
export interface LatencyLimits {
  /** For the answer to an uncached query. */
  readonly queryMs: number;
  /**
   * For the same in 99 % of the time, on a machine where the control has almost no latency. Otherwise the limit is a multiple
   * of the control's latency.
   */
  readonly queryP99Ms?: number;
  /** For the answer to a mutation. */
  readonly mutationMs: number;
  /** From sending a mutation to its Transition. Default: `mutationMs` plus `queryMs`. */
  readonly shownMs?: number;
}

export interface World {
  readonly server: ServerProcess;
  /** Lines that the server has printed since the scenario began. */
  readonly log: readonly string[];
  /** Folder of the server's data. */
  readonly dataDir: string;
  /** Whether attacks run for the time that measurements need. */
  readonly isFull: boolean;
  /** Answers that the bystander has received since the scenario began. */
  served(): Promise<Served>;
  /** Access token of a new account. */
  signUp(): Promise<string>;
  /** Resolves when a log line matches, including earlier lines of the scenario. Throws after a minute. */
  logged(pattern: RegExp): Promise<string>;
}

/** Measurements of an attack. */
export interface Measured {
  readonly figure: string;
  readonly limits: LatencyLimits;
}

export interface Scenario {
  /** The rule that the scenario tests. */
  readonly rule: string;
  readonly name: string;
  /** The effect without a defense, in a few words. */
  readonly before?: string;
  /**
   * Attacks the server and asserts the rule by events and their order, not by durations. Returns the row's figure, and the
   * bystander's allowed latency if it depends on a measurement of this machine. The bystander is active from its first line
   * until after its last.
   */
  readonly attack: (world: World) => Promise<string | Measured>;
  /** Maximum latencies in the benchmark; `null` for a row that measures them or is not about latency. */
  readonly limits: LatencyLimits | null;
  /** Whether the latency of this row is the base of other limits: see {@linkcode LatencyLimits}. */
  readonly isControl?: boolean;
  /** Whether the server may refuse or lose some of the bystander's calls. Default: false. */
  readonly mayFail?: boolean;
  /** Flags of `serve` for the row. Rows with equal flags share a server. */
  readonly flags?: readonly string[];
  /** Whether the row runs last, with a separate server and data folder if latencies are measured. */
  readonly alone?: boolean;
  /** Whether the row takes too long for `deno task test`. */
  readonly long?: boolean;
}

/** A row of the table. */
export interface Result {
  readonly scenario: Scenario;
  readonly waits: Waits | null;
  readonly figure: string;
  readonly ms: number;
}
