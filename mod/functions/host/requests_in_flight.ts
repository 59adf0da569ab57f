/** Named mutations in flight. A resent copy waits for the first one, so that both get one outcome. */
import type { MutationAnswer, MutationCall } from "../host_port.ts";

export class RequestsInFlight {
  /** Bounded by the queues. */
  readonly #answers = new Map<string, Promise<MutationAnswer>>();

  /** Runs a mutation, or returns the answer of the copy in flight as a recorded one. */
  async run(call: MutationCall, start: () => Promise<MutationAnswer>): Promise<MutationAnswer> {
    const { replay, identity: { principal } } = call;
    if (replay === undefined) return await start();
    const key = JSON.stringify([replay.sessionId, replay.requestId, principal]);
    const first = this.#answers.get(key);
    if (first !== undefined) {
      const { outcome, ts } = await first;
      return { outcome: { ...outcome, logLines: [] }, ts, replayed: true };
    }
    const answer = start();
    this.#answers.set(key, answer);
    try {
      return await answer;
    } finally {
      this.#answers.delete(key);
    }
  }
}
