/** While the database is another server's: where calls go that this one may not answer any more. */
import type { FunctionCall, MutationAnswer, MutationCall } from "../host_port.ts";
import type { Outcome } from "../outcome.ts";
import type { ReaderPool } from "./readers/reader_pool.ts";
import type { MutationWriter } from "./writer/mutation_writer.ts";

/** Where the calls of a server go that has lent its database for good. They never reject. */
export interface PassedCalls {
  mutate(call: MutationCall): Promise<MutationAnswer>;
  query(call: FunctionCall): Promise<Outcome>;
}

/** The database is another server's: calls wait until one of these is called. */
export interface Lent {
  /** It is ours again. */
  giveBack(): void;
  /** It stays the other's: what waits and what is still to come goes there. */
  passOn(to: PassedCalls): void;
}

export interface LendingOptions {
  readonly writer: MutationWriter;
  readonly readers: ReaderPool;
  /** Called when the database was given back and there is a writer again. */
  readonly onBack: () => void;
}

export class Lending {
  readonly #options: LendingOptions;
  /** Settles to `null` when the database is given back; `null`: it is not lent. */
  #passing: Promise<PassedCalls | null> | null = null;
  #passedTs = 0;

  constructor(options: LendingOptions) {
    this.#options = options;
  }

  /** Where calls go while the database is lent: settles to `null` when it is given back. */
  get passing(): Promise<PassedCalls | null> | null {
    return this.#passing;
  }

  /** ts of the newest mutation that was passed on by {@linkcode retire}. */
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
        // Its commits are not told here: whatever is read is as new as it can be.
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
