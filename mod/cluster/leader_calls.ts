/**
 * Calls that a follower has its leader run. They are kept until they are answered: when the link breaks, those that the
 * leader recognises when they come again, by their replay key, and those it never got are sent to the next one.
 */
import type { ActionAnswer, LeaderPort } from "../functions/host/mod.ts";
import type { FunctionCall, MutationAnswer, MutationCall } from "../functions/host_port.ts";
import { failed, type Outcome, outcomeUnknown, unavailable } from "../functions/outcome.ts";
import { type Clock, steadyClock, type Timer } from "../kit/clock.ts";
import { linkLimits } from "./limits.ts";
import { frameBody } from "./link/frames.ts";
import { Link } from "./link/link.ts";
import { type FromFollower, type FromLeader, outcomeOf, wireCall } from "./messages.ts";

/** How a call was answered; `null` parts where the leader has nothing to say of them. */
interface Answered {
  readonly outcome: Outcome;
  readonly answer: Omit<MutationAnswer, "outcome"> | null;
  readonly ts: number;
  readonly verification?: unknown;
}

interface Pending {
  readonly body: Uint8Array;
  /** Whether it may be sent once more. */
  readonly again: boolean;
  readonly resolve: (answered: Answered) => void;
  /** Runs it in this process. */
  readonly run: ((leader: HereLeader) => Promise<Omit<Answered, "verification">>) | null;
  /** Mutations of one turn run in the order in which they were asked; `null`: it has none. */
  readonly turn: string | null;
  /** Who was asked; `null`: nobody yet. */
  askedOf: Link | "here" | null;
  /** Whether somebody was asked at any time, and may have run it. */
  wasAsked: boolean;
  /** Since when it waits for a leader. */
  since: number;
}

/** A leader in this very process. */
export type HereLeader = Required<Pick<LeaderPort, "mutate" | "act">>;

/** What a follower is told that is an answer. */
export type AnswerMessage = FromLeader & { readonly t: "mutated" | "acted" | "verified" };

export class LeaderCalls implements LeaderPort {
  readonly #clock: Clock;
  /** Where this process stands, for answers that nobody gave. */
  readonly #ts: () => number;
  readonly #pending = new Map<number, Pending>();
  #pendingBytes = 0;
  /** By which calls go. */
  #link: Link | null = null;
  /** When this process last had a link, or led. */
  #linkedAt: number;
  /** Those on which answers may still come. */
  readonly #old = new Set<Link>();
  /** How many calls of a turn are still with a leader of before: what is behind them waits. */
  readonly #oldTurns = new Map<string, number>();
  /** By turn, what waits for that alone, in order. */
  readonly #behind = new Map<string, Set<number>>();
  /** Set while this process leads. */
  #here: HereLeader | null = null;
  #lastId = 0;
  #expiry: Timer | null = null;
  #closed = false;

  constructor({ ts, clock = steadyClock }: { readonly ts: () => number; readonly clock?: Clock }) {
    this.#ts = ts;
    this.#clock = clock;
    this.#linkedAt = clock.now();
  }

  /** How long calls have had no link to a leader, in ms; `null` while there is one, or this process leads. */
  get unlinkedMs(): number | null {
    return this.#link !== null || this.#here !== null ? null : this.#clock.now() - this.#linkedAt;
  }

  /** Calls that wait for answers. */
  get waiting(): number {
    return this.#pending.size;
  }

  async mutate(call: MutationCall): Promise<MutationAnswer> {
    const again = call.replay !== undefined;
    const { outcome, answer, ts } = await this.#ask(
      (id) => ({ t: "mutate", id, call: wireCall(call) }),
      {
        again,
        turn: call.caller?.turn ?? null,
        run: async (leader) => {
          const { outcome, ...answer } = await leader.mutate(call);
          return { outcome, answer, ts: answer.ts };
        },
      },
    );
    return answer === null ? { outcome, ts, replayed: false } : { outcome, ...answer };
  }

  async act(call: FunctionCall): Promise<ActionAnswer> {
    const run = async (leader: HereLeader) => ({ ...await leader.act(call), answer: null });
    const asked = this.#ask((id) => ({ t: "act", id, call: wireCall(call) }), {
      again: false,
      turn: null,
      run,
    });
    const { outcome, ts } = await asked;
    return { outcome, ts };
  }

  /** Has the leader check a token; `null` when it did not say. */
  async verify(token: string): Promise<unknown> {
    const { verification = null } = await this.#ask((id) => ({ t: "verify", id, token }), {
      again: true,
      turn: null,
      run: null,
    });
    return verification;
  }

  /** The leader is reached by this link from now on; `null`: by none. What was asked on another is answered there, or lost. */
  use(link: Link | null): void {
    if (this.#closed) return;
    this.keep();
    if (this.#here !== null) this.#linkedAt = this.#clock.now();
    this.#link = link;
    this.#here = null;
    for (const pending of this.#pending.values()) {
      // As of a leader that is lost: it recognises what it has done.
      if (pending.askedOf === "here" && pending.again) this.#wait(pending);
    }
    this.#askWaiting();
  }

  /** A link has ended: what was asked on it may be asked again, or is lost. */
  left(link: Link): void {
    if (this.#link === link) this.#unlink();
    if (this.#old.delete(link)) this.#countTurns();
    for (const [id, pending] of this.#pending) {
      if (pending.askedOf !== link) continue;
      if (pending.again) this.#wait(pending);
      else this.#settle(id, lost());
    }
    this.#askWaiting();
  }

  /**
   * What is asked from now on waits for the next leader; the present one still answers what it was asked. With `link` it is the
   * leader there that leaves: it may be one of before, which says so again.
   */
  keep(link = this.#link): void {
    if (this.#link === null || link !== this.#link) return;
    this.#old.add(this.#link);
    this.#unlink();
    this.#countTurns();
  }

  /** This process leads from now on: it runs what waits, and what is asked. */
  runHere(leader: HereLeader): void {
    if (this.#closed) return;
    this.keep();
    this.#here = leader;
    this.#askWaiting();
  }

  /** Takes an answer. Throws for one that nobody waits for. */
  answered(message: AnswerMessage, text: string): void {
    // One that was given up, and comes late, is nobody's.
    if (!this.#pending.has(message.id)) {
      if (message.id > this.#lastId) throw new RangeError("An answer to no call");
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
          outcome: failed("internal", "It was no call"),
          answer: null,
          ts: this.#ts(),
          verification: message.verification,
        });
      default:
        message satisfies never;
    }
  }

  /** Everything that waits is answered as what may come again, or what may have run; what is still to come may come again. */
  close(): void {
    this.#closed = true;
    this.#link = this.#here = null;
    this.#old.clear();
    this.#oldTurns.clear();
    this.#expiry?.cancel();
    for (const [id, pending] of [...this.#pending]) this.#settle(id, unanswered(pending));
  }

  #ask(
    messageOf: (id: number) => FromFollower,
    { again, turn, run }: Pick<Pending, "again" | "turn" | "run">,
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
    const pending: Pending = { body, again, turn, run, resolve, askedOf: null, wasAsked: false, since };
    this.#pending.set(id, pending);
    this.#askInTurn(id, pending);
    if (pending.askedOf === null && this.#expiry === null) this.#watch();
    return promise;
  }

  #unlink(): void {
    this.#link = null;
    this.#linkedAt = this.#clock.now();
  }

  #wait(pending: Pending): void {
    pending.askedOf = null;
    pending.since = this.#clock.now();
  }

  #askWaiting(): void {
    this.#behind.clear();
    for (const [id, pending] of this.#pending) {
      if (pending.askedOf === null) this.#askInTurn(id, pending);
    }
    this.#watch();
  }

  #isOld({ askedOf }: Pending): boolean {
    return askedOf instanceof Link && this.#old.has(askedOf);
  }

  #countTurns(): void {
    this.#oldTurns.clear();
    if (this.#old.size === 0) return;
    for (const pending of this.#pending.values()) {
      const { turn } = pending;
      if (turn !== null && this.#isOld(pending)) {
        this.#oldTurns.set(turn, (this.#oldTurns.get(turn) ?? 0) + 1);
      }
    }
  }

  /** A call of the turn was answered by a leader of before: behind the last of them others may go. */
  #endOld(turn: string): void {
    const left = (this.#oldTurns.get(turn) ?? 1) - 1;
    if (left > 0) return void this.#oldTurns.set(turn, left);
    this.#oldTurns.delete(turn);
    const behind = this.#behind.get(turn) ?? [];
    this.#behind.delete(turn);
    for (const id of behind) {
      const pending = this.#pending.get(id);
      if (pending?.askedOf === null) this.#askInTurn(id, pending);
    }
  }

  #askInTurn(id: number, pending: Pending): void {
    const { turn } = pending;
    if (turn === null || !this.#oldTurns.has(turn)) return this.#askFor(id, pending);
    const behind = this.#behind.get(turn);
    if (behind === undefined) this.#behind.set(turn, new Set([id]));
    else behind.add(id);
  }

  #askFor(id: number, pending: Pending): void {
    if (this.#link?.sendBody(pending.body) === true) {
      pending.askedOf = this.#link;
      pending.wasAsked = true;
    }
    if (this.#here === null || pending.run === null) return;
    pending.askedOf = "here";
    pending.wasAsked = true;
    pending.run(this.#here).catch((error) => ({ outcome: outcomeUnknown(String(error)) })).then(
      (answered) => {
        // Another one may have been asked meanwhile.
        if (pending.askedOf === "here") this.#settle(id, answered);
      },
    );
  }

  #settle(id: number, answered: Omit<Answered, "ts" | "answer"> & Partial<Answered>): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#pending.delete(id);
    this.#pendingBytes -= pending.body.length;
    pending.resolve({ answer: null, ts: this.#ts(), ...answered });
    const { turn } = pending;
    if (turn === null) return;
    this.#behind.get(turn)?.delete(id);
    if (this.#isOld(pending)) this.#endOld(turn);
  }

  /** Without a leader calls wait for a bounded time. */
  #watch(): void {
    if (!this.#pending.values().some(({ askedOf }) => askedOf === null)) {
      this.#expiry?.cancel();
      this.#expiry = null;
      return;
    }
    this.#expiry ??= this.#clock.every(linkLimits.beatMs, () => {
      const before = this.#clock.now() - linkLimits.leaderWaitMs;
      for (const [id, pending] of this.#pending) {
        if (pending.askedOf === null && pending.since <= before) this.#settle(id, unanswered(pending));
      }
      this.#watch();
    });
  }
}

/** Of a call that nobody answers any more. */
function unanswered({ wasAsked }: Pending): Pick<Answered, "outcome"> {
  return wasAsked ? lost() : away();
}

/** This process has sent the call to no leader. */
function away(): Pick<Answered, "outcome"> {
  return { outcome: unavailable("There is no leader now, try again in a moment") };
}

/** The leader may have run the call. A copy with the same key is answered from its record. */
function lost(): Pick<Answered, "outcome"> {
  return { outcome: outcomeUnknown("The leader was lost: whether the call ran is not known") };
}
