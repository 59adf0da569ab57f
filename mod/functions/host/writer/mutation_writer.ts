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

export interface MutationWriter {
  readonly waiting: number;
  /** Starts the first writer. Throws if that fails. */
  start(): Promise<Ready>;
  /** Never rejects. */
  mutate(call: MutationCall): Promise<MutationAnswer>;
  /**
   * Replaces the writer between groups; the old one continues if the new one does not start. `before` and `meanwhile` run
   * around its start.
   */
  replace(
    meanwhile: (ready: Ready) => Promise<void>,
    options?: { readonly before?: () => Promise<void>; readonly start?: () => Promise<StartResult> },
  ): Promise<ReplaceResult>;
  updateJournal(message: JournalConfirmed | JournalRestart): void;
  /** Ends the writer after its current work, for a bounded time. */
  close(): Promise<void>;
}
