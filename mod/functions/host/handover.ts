/** Redirects calls while the database is handed over to another server. */
import type { FunctionCall, MutationAnswer, MutationCall } from "../host_port.ts";
import type { Outcome } from "../outcome.ts";
import type { ReaderPool } from "./readers/reader_pool.ts";
import type { MutationWriter } from "./writer/mutation_writer.ts";

/** Runs the calls of a server that has handed over its database for good. Never rejects. */
export interface PassedCalls {
  mutate(call: MutationCall): Promise<MutationAnswer>;
  query(call: FunctionCall): Promise<Outcome>;
}

/** The database is handed over: calls wait until one of these is called. */
export interface Lent {
  /** The handover was cancelled. */
  giveBack(): void;
  /** The handover is final: waiting and future calls go to the other server. */
  passOn(to: PassedCalls): void;
}

export interface LendingOptions {
  readonly writer: MutationWriter;
  readonly readers: ReaderPool;
  /** Called when the database was returned and a writer runs again. */
  readonly onBack: () => void;
}

export class Handover {
  readonly #options: LendingOptions;
  /** Settles to `null` when the database is returned. `null` if it is not handed over. */
  #passing: Promise<PassedCalls | null> | null = null;
  #passedTs = 0;

  constructor(options: LendingOptions) {
    this.#options = options;
  }

  /** Destination of calls during a handover. Settles to `null` when the database is returned. */
  get passing(): Promise<PassedCalls | null> | null {
    return this.#passing;
  }

  /** ts of the newest mutation forwarded by {@linkcode retire}. */
  get passedTs(): number {
    return this.#passedTs;
  }

  /** See `IsolateHost.lend`. */
  async lend(): Promise<Lent | null> {
    const { writer, readers, onBack } = this.#options;
    const { promise, resolve } = Promise.withResolvers<PassedCalls | null>();
    if (await writer.lend?.(promise, onBack) !== true) return null;
    this.#passing = promise;
    await readers.hold();
    return {
      giveBack: () => {
        this.#passing = null;
        resolve(null);
      },
      passOn: (to) => {
        writer.passOn?.((call) => to.mutate(call));
        readers.passOn((call) => to.query(call));
        // Its commits are not published here, so reads are as new as they can be.
        readers.heard(Infinity);
        resolve(to);
      },
    };
  }

  /** See `IsolateHost.retire`. */
  async retire(mutate: PassedCalls["mutate"]): Promise<boolean> {
    const passed: PassedCalls["mutate"] = async (call) => {
      const answer = await mutate(call);
      this.#passedTs = Math.max(this.#passedTs, answer.ts);
      return answer;
    };
    return await this.#options.writer.retire?.(passed) ?? false;
  }
}
