/** The link of a follower to its leader: messages wait until the simulation delivers or loses them. */
import type { LeaderCalls } from "../../../mod/cluster/mod.ts";
import { frameBody, Link, parseBody } from "../../../mod/cluster/link.ts";
import { type FromLeader, parseFromFollower, wireEnd } from "../../../mod/cluster/messages.ts";
import type { AnswerMessage } from "../../../mod/cluster/leader_calls.ts";
import type { ClusterHost } from "./cluster_host.ts";

export class SimLink {
  readonly #calls: LeaderCalls;
  readonly #toLeader: Uint8Array[] = [];
  readonly #toFollower: Uint8Array[] = [];
  readonly #link: Link;
  readonly leader: ClusterHost;
  open = true;

  constructor({ calls, leader }: { readonly calls: LeaderCalls; readonly leader: ClusterHost }) {
    this.#calls = calls;
    this.leader = leader;
    // The link's state for calls: whether their messages have been sent.
    this.#link = Object.create(Link.prototype, {
      sendBody: {
        value: (body: Uint8Array) => {
          if (this.open) this.#toLeader.push(body);
          return this.open;
        },
      },
    });
    calls.use(this.#link);
  }

  get busy(): boolean {
    return this.open && this.#toLeader.length + this.#toFollower.length > 0;
  }

  /** Delivers up to this many frames in both directions. */
  carry(count: number): void {
    for (const body of this.#toLeader.splice(0, count)) this.#ask(body);
    for (const body of this.#toFollower.splice(0, count)) {
      const { message, text } = parseBody(body);
      this.#calls.answered(message as AnswerMessage, text);
    }
  }

  /** Breaks the link. All messages in transit are lost. */
  cut(): void {
    if (!this.open) return;
    this.open = false;
    this.#calls.linkEnded(this.#link);
  }

  #ask(body: Uint8Array): void {
    const message = parseFromFollower(parseBody(body).message);
    if (message.t !== "mutate") throw new Error(`The simulation knows no ${message.t}`);
    void this.leader.mutate(message.call).then(({ outcome, ...answer }) => {
      const { end, text } = wireEnd(outcome);
      const reported: FromLeader = { t: "mutated", id: message.id, end, answer };
      if (this.open) this.#toFollower.push(frameBody(reported, text));
    });
  }
}
