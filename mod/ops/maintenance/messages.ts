/** Messages between the main process and the maintenance process: lines of JSON, one job and one answer at a time. */
import { readJsonLines } from "../../kit/processes/json_lines.ts";
import { opsLimits } from "../limits.ts";
import type { BackupOptions, BackupSummary } from "../backups/backup.ts";
import type { RestoreFailureCause, StagedRestore } from "../backups/restore/mod.ts";

/** Options and result of each kind of job. */
export interface Work {
  readonly backup: { readonly options: BackupOptions; readonly result: BackupSummary };
  readonly stage: {
    readonly options: {
      readonly dataDir: string;
      readonly archive: string;
      readonly source: string;
      readonly checkOnly?: boolean;
    };
    readonly result: StagedRestore;
  };
}

export type Kind = keyof Work;

export type Job = { readonly [K in Kind]: { readonly kind: K; readonly options: Work[K]["options"] } }[Kind];

export type Answer =
  | { readonly ok: true; readonly result: Work[Kind]["result"] }
  /** With a `fault` the message is meant for users; otherwise it is a bug or a system failure. */
  | { readonly ok: false; readonly fault: RestoreFailureCause | null; readonly message: string };

/** Reads messages until the stream ends. Throws for invalid ones. */
export async function* readMessages<Message extends Job | Answer>(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<Message> {
  for await (const line of readJsonLines(stream, opsLimits.maintenanceLineCharsMax)) {
    yield JSON.parse(line) as Message;
  }
}
