/** The host's interface to its writer, whether mutations run here or elsewhere. */
import type { MutationAnswer, MutationCall } from "../../host_port.ts";
import type { JournalConfirmed, JournalRestart } from "../../wire/messages.ts";
import type { Ready, StartResult } from "../process/isolate.ts";

export type ReplaceResult = { readonly ok: true } | {
  readonly ok: false;
  readonly message: string;
  /** Nothing was attempted: the server is stopping or already loading something. */
  readonly busy?: boolean;
};

/** Runs a mutation elsewhere. Never rejects. */
export type PassTo = (call: MutationCall) => Promise<MutationAnswer>;

export interface MutationWriter {
  /** Mutations not yet sent to a writer. */
  readonly waiting: number;
  /** Starts the first writer. Throws if that fails. */
  start(): Promise<Ready>;
  /** Never rejects. */
  mutate(call: MutationCall): Promise<MutationAnswer>;
  /**
   * Replaces the writer by one with new code, between two groups. `before` runs before the new one is started, `meanwhile`
   * after that. Nothing is committed until it has ended. The old writer continues if the new one cannot be started.
   */
  replace(
    meanwhile: (ready: Ready) => Promise<void>,
    options?: { readonly before?: () => Promise<void>; readonly start?: () => Promise<StartResult> },
  ): Promise<ReplaceResult>;
  /**
   * Ends the writer between two batches. Calls wait until `back` settles. Then a writer is started again and `onBack` is
   * called, unless calls are redirected. Resolves when the writer is gone, or to `false` if that is currently impossible.
   * Absent if there is nothing to hand over.
   */
  lend?(back: Promise<unknown>, onBack: () => void): Promise<boolean>;
  /** During a handover, redirects waiting and future calls. */
  passOn?(to: PassTo): void;
  /**
   * Stops committing after the current batch, and redirects waiting and future calls. Resolves then, or to `false` if that is
   * currently impossible. Absent if nothing is committed here.
   */
  retire?(to: PassTo): Promise<boolean>;
  /** Forwards confirmations of journal rows. */
  tendJournal(message: JournalConfirmed | JournalRestart): void;
  /** Ends the writer after its current work, for a bounded time. */
  close(): Promise<void>;
}
