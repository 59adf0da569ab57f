/** Those that come to a server which is about to lead: they are let in as far as that goes without a leader. */
import { closeQuietly } from "../kit/local_socket.ts";
import { type Greeted, greetFollower } from "./greeting.ts";
import type { Leader } from "./leader.ts";
import { linkLimits } from "./limits.ts";

interface Early {
  readonly conn: Deno.TcpConn;
  readonly greeted: Promise<Greeted>;
  readonly timer: ReturnType<typeof setTimeout>;
  /** Nobody leads in time: ends the handshake where it waits for that. */
  readonly giveUp: () => void;
}

export class EarlyFollowers implements Disposable {
  readonly #secret: string;
  readonly #all = new Set<Early>();
  /** Resolved when there is a leader. */
  #led = Promise.withResolvers<void>();

  constructor(secret: string) {
    this.#secret = secret;
  }

  /**
   * It is quicker to be there already than to come again; but not for long. A link is through its handshake when the leader
   * takes it. A request is not: whoever is told that it was taken does not ask another leader.
   */
  hold(conn: Deno.TcpConn): void {
    const { handshakesMax, handshakesOfAddressMax } = linkLimits;
    const ofAddress = [...this.#all].filter((early) =>
      early.conn.remoteAddr.hostname === conn.remoteAddr.hostname
    );
    if (this.#all.size >= handshakesMax || ofAddress.length >= handshakesOfAddressMax) {
      return closeQuietly(conn);
    }
    const { promise: led } = this.#led;
    const { promise: over, reject } = Promise.withResolvers<never>();
    over.catch(() => {});
    const greeted = greetFollower(conn, {
      secret: this.#secret,
      sealed: true,
      passes: ({ requests }) => requests === true ? Promise.race([led, over]) : undefined,
    });
    const early: Early = {
      conn,
      greeted,
      timer: setTimeout(() => this.#end(early), linkLimits.strangerMs),
      giveUp: () => reject(new Error("Nobody leads here yet")),
    };
    this.#all.add(early);
    greeted.catch(() => this.#end(early));
  }

  /** From now on they are the leader's. */
  giveTo(leader: Pick<Leader, "take">): void {
    this.#led.resolve();
    this.#led = Promise.withResolvers();
    for (const early of [...this.#all]) {
      this.#forget(early);
      leader.take(early.conn, early.greeted);
    }
  }

  [Symbol.dispose](): void {
    for (const early of [...this.#all]) this.#end(early);
  }

  /** Does nothing to one that is the leader's. */
  #end(early: Early): void {
    if (!this.#forget(early)) return;
    closeQuietly(early.conn);
    early.giveUp();
  }

  #forget(early: Early): boolean {
    clearTimeout(early.timer);
    return this.#all.delete(early);
  }
}
