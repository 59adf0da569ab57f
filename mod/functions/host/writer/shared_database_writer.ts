/** The writer of a host whose commits are made by another process on the same database. It has no isolate. */
import type { MutationAnswer, MutationCall } from "../../host_port.ts";
import type { CommitSource } from "../leader_port.ts";
import type { Ready } from "../process/isolate.ts";
import type { MutationWriter, ReplaceResult } from "./mutation_writer.ts";

export class SharedDatabaseWriter implements MutationWriter {
  readonly #source: Extract<CommitSource, { from: "leader" }>;

  constructor(source: Extract<CommitSource, { from: "leader" }>) {
    this.#source = source;
  }

  readonly waiting = 0;

  start(): Promise<Ready> {
    const { app: { functions, crons, routes }, ts } = this.#source;
    return Promise.resolve({ type: "Ready", functions, crons, routes, ts, lastGroup: null });
  }

  mutate(call: MutationCall): Promise<MutationAnswer> {
    return this.#source.leader.mutate(call);
  }

  replace(): Promise<ReplaceResult> {
    return Promise.resolve({ ok: false, message: "The code is exchanged by the server that writes" });
  }

  updateJournal(): void {}

  async close(): Promise<void> {}
}
