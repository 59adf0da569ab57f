/** Limits the concurrent requests of each client to the leader, so that none uses most of the connections. */
import { linkLimits } from "../../cluster/limits.ts";

export class ClientRequestLimit {
  readonly #requests = new Map<string, number>();

  /** Counts a request until the promise settles. Returns `false` if the client has reached the limit. */
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
