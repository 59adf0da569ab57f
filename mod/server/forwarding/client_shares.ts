/** How many requests of each client are on their way to the leader: the ways there are for all, and no client takes most of them. */
import { linkLimits } from "../../cluster/limits.ts";

export class ClientShares {
  readonly #requests = new Map<string, number>();

  /** Whether one more of this client may go, which is on its way until the promise is settled. */
  take(client: string, until: Promise<unknown>): boolean {
    const before = this.#requests.get(client) ?? 0;
    if (before >= linkLimits.tunnelsOfClientMax) return false;
    this.#requests.set(client, before + 1);
    const over = () => {
      const left = (this.#requests.get(client) ?? 1) - 1;
      if (left === 0) this.#requests.delete(client);
      else this.#requests.set(client, left);
    };
    until.then(over, over);
    return true;
  }
}
