/** What the host asks of its writer, whether mutations run here or commits come from elsewhere. */
import type { MutationAnswer, MutationCall } from "../../host_port.ts";
import type { JournalConfirmed, JournalRestart } from "../../wire/messages.ts";
import type { Ready, StartResult } from "../process/isolate.ts";

export type ReplaceResult = { readonly ok: true } | {
  readonly ok: false;
  readonly message: string;
  /** Nothing was tried: the server stops, or loads something already. */
  readonly busy?: boolean;
};

/** Runs a mutation elsewhere. Never rejects. */
export type PassTo = (call: MutationCall) => Promise<MutationAnswer>;

export interface MutationWriter {
  /** Mutations that no writer has taken yet. */
  readonly waiting: number;
  /** Starts the first writer. Throws when that fails. */
  start(): Promise<Ready>;
  /** Never rejects. */
  mutate(call: MutationCall): Promise<MutationAnswer>;
  /**
   * Puts a writer with new code in the old one's place between two groups. `before` runs before the new one is started,
   * `meanwhile` after that; until it has ended nothing is committed. The old one goes on when the new one cannot be started.
   */
  replace(
    meanwhile: (ready: Ready) => Promise<void>,
    options?: { readonly before?: () => Promise<void>; readonly start?: () => Promise<StartResult> },
  ): Promise<ReplaceResult>;
  /**
   * Ends the writer between two batches, after which nothing is committed here. Until `back` settles calls wait; then there is
   * a writer again, and `onBack` is called, unless they are passed on. Resolves when the writer is gone; to `false` when it could not be lent now.
   * Absent where there is nothing to lend.
   */
  lend?(back: Promise<unknown>, onBack: () => void): Promise<boolean>;
  /** What waits and what is still to come is run elsewhere from now on, while the database is lent. */
  passOn?(to: PassTo): void;
  /**
   * Commits nothing any more when the batch that is out has ended, and has what waits and what is still to come run elsewhere.
   * Resolves then; to `false` when it cannot be done now. Absent where nothing is committed.
   */
  retire?(to: PassTo): Promise<boolean>;
  /** Passes on what became of journal rows. */
  tendJournal(message: JournalConfirmed | JournalRestart): void;
  /** Ends the writer when it is done with what it is at, for a bounded time. */
  close(): Promise<void>;
}
