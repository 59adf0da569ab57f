/** Named mutations in flight. A resent copy waits for the first one, so that both get one outcome. */
import type { MutationAnswer, MutationCall } from "../host_port.ts";

export class RequestsInFlight {
  /** Bounded by the queues. */
  readonly #answers = new Map<string, Promise<MutationAnswer>>();

  /** Runs a mutation, or returns the answer of the copy in flight as a recorded one. */
  run(call: MutationCall, start: () => Promise<MutationAnswer>): Promise<MutationAnswer> {
    const { replay, identity: { principal } } = call;
    if (replay === undefined) return start();
    const key = JSON.stringify([replay.sessionId, replay.requestId, principal]);
    const first = this.#answers.get(key);
    if (first !== undefined) {
      return first.then(({ outcome, ts }) => ({ outcome: { ...outcome, logLines: [] }, ts, replayed: true }));
    }
    const answer = start();
    this.#answers.set(key, answer);
    const forget = () => void this.#answers.delete(key);
    void answer.then(forget, forget);
    return answer;
  }
}
