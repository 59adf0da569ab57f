/** Calls of a follower to its leader. After a lost link, those with a replay key or never sent go to the next leader. */
import type { ActionAnswer, LeaderPort } from "../functions/host/mod.ts";
import type { FunctionCall, MutationAnswer, MutationCall } from "../functions/host_port.ts";
import { failed, type Outcome, outcomeUnknown, unavailable } from "../functions/outcome.ts";
import { type Clock, steadyClock, type Timer } from "../kit/clock.ts";
import { linkLimits } from "./limits.ts";
import { frameBody, Link } from "./link.ts";
import { type FromFollower, type FromLeader, outcomeOf, wireCall } from "./messages.ts";

/** Answer to a call. `answer` is `null` unless the leader ran a mutation. */
interface Answered {
  readonly outcome: Outcome;
  readonly answer: Omit<MutationAnswer, "outcome"> | null;
  readonly ts: number;
  readonly verification?: unknown;
}

interface Pending {
  readonly body: Uint8Array;
  /** Whether it has a replay key, so that the next leader recognizes it. */
  readonly resendable: boolean;
  readonly resolve: (answered: Answered) => void;
  /** Runs it in this process; `null` if that is not possible. */
  readonly run: ((leader: LocalLeader) => Promise<Omit<Answered, "verification">>) | null;
  /** Whether it must not overtake earlier calls: mutations of a client. */
  readonly ordered: boolean;
  /** Recipient of the call; `null` while it waits for a leader. */
  askedOf: Leader | null;
  /** Whether it was ever sent, so that a leader may have run it. */
  wasAsked: boolean;
  /** Start of the wait for a leader. */
  since: number;
}

/** This process, while it leads. */
export type LocalLeader = Required<LeaderPort>;

/** Another process over a link, or this one. */
type Leader = Link | LocalLeader;

export type AnswerMessage = FromLeader & { readonly t: "mutated" | "acted" | "verified" };

export class LeaderCalls implements LeaderPort {
  readonly #clock: Clock;
  /** ts of this process, for calls that the leader has not answered. */
  readonly #ts: () => number;
  readonly #pending = new Map<number, Pending>();
  #pendingBytes = 0;
  #leader: Leader | null = null;
  /** When this process last had a leader. */
  #ledAt: number;
  /** Links to earlier leaders that still answer. Mutations of clients wait until those sent there are answered. */
  readonly #old = new Set<Link>();
  #lastId = 0;
  #expiry: Timer | null = null;
  #closed = false;

  constructor({ ts, clock = steadyClock }: { readonly ts: () => number; readonly clock?: Clock }) {
    this.#ts = ts;
    this.#clock = clock;
    this.#ledAt = clock.now();
  }

  /** Time without a leader, in milliseconds; `null` while there is one. */
  get unlinkedMs(): number | null {
    return this.#leader !== null ? null : this.#clock.now() - this.#ledAt;
  }

  get waiting(): number {
    return this.#pending.size;
  }

  async mutate(call: MutationCall): Promise<MutationAnswer> {
    const resendable = call.replay !== undefined;
    const { outcome, answer, ts } = await this.#ask(
      (id) => ({ t: "mutate", id, call: wireCall(call) }),
      {
        resendable,
        ordered: call.caller !== undefined,
        run: async (leader) => {
          const { outcome, ...answer } = await leader.mutate(call);
          return { outcome, answer, ts: answer.ts };
        },
      },
    );
    return answer === null ? { outcome, ts, replayed: false } : { outcome, ...answer };
  }

  async act(call: FunctionCall): Promise<ActionAnswer> {
    const run = async (leader: LocalLeader) => ({ ...await leader.act(call), answer: null });
    const asked = this.#ask((id) => ({ t: "act", id, call: wireCall(call) }), {
      resendable: false,
      ordered: false,
      run,
    });
    const { outcome, ts } = await asked;
    return { outcome, ts };
  }

  /** Verifies a token at the leader. Resolves with `null` if the leader did not answer. */
  async verify(token: string): Promise<unknown> {
    const { verification = null } = await this.#ask((id) => ({ t: "verify", id, token }), {
      resendable: true,
      ordered: false,
      run: null,
    });
    return verification;
  }

  /** Sends waiting and further calls to a leader; `null`: there is none. An earlier link still delivers its answers. */
  use(leader: Leader | null): void {
    if (this.#closed) return;
    this.keep();
    this.#leader = leader;
    this.#askWaiting();
  }

  /** Handles the end of a link: calls are sent again, or their outcome is unknown. */
  linkEnded(link: Link): void {
    if (this.#leader === link) this.keep();
    this.#old.delete(link);
    for (const [id, pending] of this.#pending) {
      if (pending.askedOf !== link) continue;
      if (pending.resendable) this.#wait(pending);
      else this.#settle(id, lost());
    }
    this.#askWaiting();
  }

  /** Keeps further calls for the next leader; the current one answers earlier calls. Ignores earlier leaders. */
  keep(leader = this.#leader): void {
    if (leader === null || leader !== this.#leader) return;
    this.#leader = null;
    this.#ledAt = this.#clock.now();
    if (leader instanceof Link) {
      this.#old.add(leader);
      return;
    }
    // The next leader recognizes these calls by their replay keys.
    for (const pending of this.#pending.values()) {
      if (pending.askedOf === leader && pending.resendable) this.#wait(pending);
    }
  }

  /** Handles an answer of the leader. Throws if there was no such call. */
  answered(message: AnswerMessage, text: string): void {
    // The call has timed out.
    if (!this.#pending.has(message.id)) {
      if (message.id > this.#lastId) throw new RangeError("The leader answered an unknown call");
      return;
    }
    switch (message.t) {
      case "mutated": {
        const { answer } = message;
        const outcome = outcomeOf(message.end, text);
        return this.#settle(message.id, { outcome, answer, ts: answer.ts });
      }
      case "acted":
        return this.#settle(message.id, {
          outcome: outcomeOf(message.end, text),
          answer: null,
          ts: message.ts,
        });
      case "verified":
        return this.#settle(message.id, {
          outcome: failed("internal", "The response to a token verification has no result"),
          answer: null,
          ts: this.#ts(),
          verification: message.verification,
        });
      default:
        message satisfies never;
    }
  }

  /** Settles all calls: as refused if they were never sent, otherwise as unknown. Further calls are refused. */
  close(): void {
    this.#closed = true;
    this.#leader = null;
    this.#old.clear();
    this.#expiry?.cancel();
    for (const [id, pending] of [...this.#pending]) this.#settle(id, unanswered(pending));
  }

  #ask(
    messageOf: (id: number) => FromFollower,
    { resendable, ordered, run }: Pick<Pending, "resendable" | "ordered" | "run">,
  ): Promise<Answered> {
    const answer = (answered: Omit<Answered, "ts" | "answer">) =>
      Promise.resolve({ ...answered, answer: null, ts: this.#ts() });
    if (this.#closed) return answer(away());
    const id = ++this.#lastId;
    let body: Uint8Array;
    try {
      body = frameBody(messageOf(id));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return answer({ outcome: failed("args", `The arguments are not JSON: ${reason}`) });
    }
    const { pendingMax, pendingBytesMax } = linkLimits;
    if (this.#pending.size >= pendingMax || this.#pendingBytes + body.length > pendingBytesMax) {
      const message = `${this.#pending.size} calls wait for the leader`;
      return answer({ outcome: failed("internal", message, { retryable: true }) });
    }
    const { promise, resolve } = Promise.withResolvers<Answered>();
    this.#pendingBytes += body.length;
    const since = this.#clock.now();
    const pending: Pending = {
      body,
      resendable,
      ordered,
      run,
      resolve,
      askedOf: null,
      wasAsked: false,
      since,
    };
    this.#pending.set(id, pending);
    if (!(ordered && this.#oldAnswers)) this.#askFor(id, pending);
    if (pending.askedOf === null && this.#expiry === null) this.#watch();
    return promise;
  }

  #wait(pending: Pending): void {
    pending.askedOf = null;
    pending.since = this.#clock.now();
  }

  #askWaiting(): void {
    const oldAnswers = this.#oldAnswers;
    for (const [id, pending] of this.#pending) {
      if (pending.askedOf === null && !(oldAnswers && pending.ordered)) this.#askFor(id, pending);
    }
    this.#watch();
  }

  #isOld({ ordered, askedOf }: Pending): boolean {
    return ordered && askedOf instanceof Link && this.#old.has(askedOf);
  }

  /** Whether an earlier leader still answers mutations, which later ones must not overtake. */
  get #oldAnswers(): boolean {
    return this.#old.size > 0 && this.#pending.values().some((pending) => this.#isOld(pending));
  }

  #askFor(id: number, pending: Pending): void {
    const leader = this.#leader;
    if (leader === null) return;
    if (leader instanceof Link ? !leader.sendBody(pending.body) : pending.run === null) return;
    pending.askedOf = leader;
    pending.wasAsked = true;
    if (leader instanceof Link || pending.run === null) return;
    pending.run(leader).catch((error) => ({ outcome: outcomeUnknown(String(error)) })).then((answered) => {
      // It may have been sent to another leader in the meantime.
      if (pending.askedOf === leader) this.#settle(id, answered);
    });
  }

  #settle(id: number, answered: Omit<Answered, "ts" | "answer"> & Partial<Answered>): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#pending.delete(id);
    this.#pendingBytes -= pending.body.length;
    pending.resolve({ answer: null, ts: this.#ts(), ...answered });
    if (this.#isOld(pending) && !this.#oldAnswers) this.#askWaiting();
  }

  /** Refuses calls that have waited too long for a leader. */
  #watch(): void {
    if (!this.#pending.values().some(({ askedOf }) => askedOf === null)) {
      this.#expiry?.cancel();
      this.#expiry = null;
      return;
    }
    this.#expiry ??= this.#clock.every(linkLimits.keepaliveMs, () => {
      const before = this.#clock.now() - linkLimits.leaderWaitMs;
      for (const [id, pending] of this.#pending) {
        if (pending.askedOf === null && pending.since <= before) this.#settle(id, unanswered(pending));
      }
      this.#watch();
    });
  }
}

function unanswered({ wasAsked }: Pending): Pick<Answered, "outcome"> {
  return wasAsked ? lost() : away();
}

function away(): Pick<Answered, "outcome"> {
  return { outcome: unavailable("There is no leader now. Try again in a moment") };
}

/** The leader may have run the call. A copy with the same key is answered from its record. */
function lost(): Pick<Answered, "outcome"> {
  return {
    outcome: outcomeUnknown("The connection to the leader was lost. It is not known whether the call ran"),
  };
}
