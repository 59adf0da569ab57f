/** Streams of the leader on a follower: one connection for each stream, for all of its readers here. */
import { type Clock, pause, steadyClock } from "../kit/clock.ts";
import { streamLimits } from "./limits.ts";
import { LiveStream, STATE_HEADER } from "./live_stream.ts";

/** Requests `path` from the leader. Rejects or answers with an error status if it is unreachable. */
export type FetchFromLeader = (path: string, signal: AbortSignal) => Promise<Response>;

/** Why a stream cannot be read. */
export type StreamRefusal = "not_found" | "overloaded" | "unavailable";

interface Followed {
  readonly found: Promise<LiveStream | StreamRefusal>;
  /** Set when the leader has answered. */
  live: LiveStream | null;
}

export class FollowedStreams implements Disposable {
  readonly #fetch: FetchFromLeader;
  readonly #clock: Clock;
  readonly #streams = new Map<string, Followed>();
  readonly #closing = new AbortController();

  constructor(fetch: FetchFromLeader, clock: Clock = steadyClock) {
    this.#fetch = fetch;
    this.#clock = clock;
  }

  /** Returns a copy of a stream that grows with it. */
  find(id: string): Promise<LiveStream | StreamRefusal> {
    if (this.#closing.signal.aborted) return Promise.resolve("unavailable");
    const known = this.#streams.get(id);
    if (known !== undefined) return known.found;
    if (!/^[\w-]+$/.test(id)) return Promise.resolve("not_found");
    if (!this.#makeRoom(streamLimits.followedMax - 1)) return Promise.resolve("overloaded");
    const followed: Followed = {
      found: Promise.resolve().then(() => this.#follow(id, followed)),
      live: null,
    };
    this.#streams.set(id, followed);
    return followed.found;
  }

  /** Ends all responses before the server stops. */
  endReaders(): void {
    this.#closing.abort();
    for (const { live } of this.#streams.values()) live?.endReaders();
  }

  get readers(): number {
    return this.#sum(({ readers }) => readers);
  }

  [Symbol.dispose](): void {
    this.endReaders();
    this.#streams.clear();
  }

  async #follow(id: string, followed: Followed): Promise<LiveStream | StreamRefusal> {
    const first = await this.#request(id, 0);
    if (first?.ok !== true) {
      this.#streams.delete(id);
      await first?.body?.cancel().catch(() => {});
      return first?.status === 404 ? "not_found" : "unavailable";
    }
    const live = followed.live = new LiveStream(first.headers.get("content-type") ?? "", this.#clock);
    void this.#copy(id, live, first);
    return live;
  }

  /** Never rejects. */
  async #copy(id: string, live: LiveStream, first: Response): Promise<void> {
    const { followTriesMax, followAgainMs, keptMs } = streamLimits;
    const { signal } = this.#closing;
    let response: Response | null = first;
    for (let tries = 0; tries < followTriesMax && !signal.aborted;) {
      const before = live.size;
      const state = response?.ok === true ? response.headers.get(STATE_HEADER) : null;
      const isWhole = response?.ok === true && await this.#append(live, response);
      if (isWhole && (state === "ended" || state === "failed")) {
        live.finish(state);
        break;
      }
      // The leader has lost it.
      if (response?.status === 404) break;
      tries = live.size > before ? 0 : tries + 1;
      if (!isWhole) await pause(this.#clock, followAgainMs * 2 ** tries, signal);
      response = await this.#request(id, live.size);
    }
    live.finish("failed");
    await response?.body?.cancel().catch(() => {});
    const isKept = () => this.#streams.get(id)?.live === live;
    // Responses in progress complete, unless others need the memory.
    do {
      await pause(this.#clock, keptMs, signal);
    } while (isKept() && live.readers > 0 && !signal.aborted);
    if (isKept()) this.#streams.delete(id);
  }

  /** Returns whether the body is complete. */
  async #append(live: LiveStream, { body }: Response): Promise<boolean> {
    try {
      for await (const chunk of body ?? []) {
        if (!this.#makeRoom(streamLimits.followedMax)) return false;
        live.append(chunk as Uint8Array);
      }
      return true;
    } catch {
      return false;
    }
  }

  async #request(id: string, offset: number): Promise<Response | null> {
    try {
      return await this.#fetch(`/api/streams/${id}?offset=${offset}`, this.#closing.signal);
    } catch {
      return null;
    }
  }

  /** Drops ended streams until there are at most `countMax`, with memory for more content. Returns `false` if that is impossible. */
  #makeRoom(countMax: number): boolean {
    const { totalBytesMax } = streamLimits;
    while (this.#streams.size > countMax || this.#sum(({ memoryBytes }) => memoryBytes) > totalBytesMax) {
      const ended = [...this.#streams].filter(([, { live }]) => live !== null && live.end !== null);
      const oldest = ended.find(([, { live }]) => live?.readers === 0) ?? ended[0];
      if (oldest === undefined) return false;
      const [id, { live }] = oldest;
      live?.drop();
      this.#streams.delete(id);
    }
    return true;
  }

  #sum(figure: (live: LiveStream) => number): number {
    let sum = 0;
    for (const { live } of this.#streams.values()) if (live !== null) sum += figure(live);
    return sum;
  }
}
