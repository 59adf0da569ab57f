/** Named mutations in flight. A resent copy waits for the first one, so that both get one outcome. */
import type { MutationAnswer, MutationCall } from "../host_port.ts";
import type { AppliedGroup } from "../wire/applied_rows.ts";

interface InFlight {
  readonly answer: Promise<MutationAnswer>;
  readonly resolve: (answer: MutationAnswer) => void;
}

export class RequestsInFlight {
  /** By client session, and by request id and principal. Bounded by the queues. */
  readonly #sessions = new Map<string, Map<string, InFlight>>();

  /** Runs a mutation, or returns the answer of the copy in flight as a recorded one. */
  run(call: MutationCall, start: () => Promise<MutationAnswer>): Promise<MutationAnswer> {
    const { replay, identity: { principal } } = call;
    if (replay === undefined) return start();
    const { sessionId, requestId } = replay;
    const name = nameOf(requestId, principal);
    const requests = this.#sessions.get(sessionId) ?? new Map<string, InFlight>();
    const first = requests.get(name)?.answer;
    if (first !== undefined) {
      return first.then(({ outcome, ts }) => ({ outcome: { ...outcome, logLines: [] }, ts, replayed: true }));
    }
    const { promise: answer, resolve, reject } = Promise.withResolvers<MutationAnswer>();
    start().then(resolve, reject);
    requests.set(name, { answer, resolve });
    this.#sessions.set(sessionId, requests);
    const forget = () => {
      requests.delete(name);
      if (requests.size === 0) this.#sessions.delete(sessionId);
    };
    void answer.then(forget, forget);
    return answer;
  }

  /**
   * Answers calls whose recorded answers are in applied rows. The leader's own answer comes over another connection: it could
   * arrive after a Transition with the writes.
   */
  answer(group: Pick<AppliedGroup, "answers">): void {
    if (this.#sessions.size === 0) return;
    for (
      const { key: { sessionId, requestId, principal }, answer } of group.answers(
        (sessionId) => this.#sessions.has(sessionId),
      )
    ) {
      this.#sessions.get(sessionId)?.get(nameOf(requestId, principal))?.resolve(answer);
    }
  }
}

function nameOf(requestId: number, principal: string | null): string {
  return JSON.stringify([requestId, principal]);
}
