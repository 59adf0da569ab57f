/** The times of one socket: pings, silence, token expiry and frames that do not leave. Pure: the hub asks, with the time. */
import { socketLimits } from "../../limits.ts";

/** What has to be done about a socket now. */
export type PulseEvent = "ping" | "silent" | "expired" | "stuck";

export interface PulseView {
  /** Frames wait behind a call that may not start yet: the client cannot be heard and is not silent. */
  readonly held: boolean;
  /** A token is being checked: one that runs out meanwhile may be about to be replaced. */
  readonly verifying: boolean;
  readonly bufferedBytes: number;
}

export class Pulse {
  /** When the caller's token expires, `null` for never. Set by the connection. */
  expiresAt: number | null = null;
  #lastHeardAt: number;
  #nextPingAt: number;
  /** Bytes ever handed to the socket. */
  #queuedBytes = 0;
  /** The bytes handed over by `at` had not all left then; `null` when everything has. */
  #sending: { readonly bytes: number; readonly at: number } | null = null;

  constructor(now: number) {
    this.#lastHeardAt = now;
    this.#nextPingAt = now + socketLimits.pingIntervalMs;
  }

  heard(now: number): void {
    this.#lastHeardAt = now;
  }

  queued(bytes: number): void {
    this.#queuedBytes += bytes;
  }

  /** When to ask again at the latest. */
  get nextAt(): number {
    const sentBy = this.#sending === null ? Infinity : this.#sending.at + socketLimits.frameSendMs;
    return Math.min(this.#nextPingAt, this.expiresAt ?? Infinity, sentBy);
  }

  /** What is due. "ping" comes once for each interval; the others end the socket. */
  check(now: number, view: PulseView): PulseEvent | null {
    if (this.expiresAt !== null && now >= this.expiresAt && !view.verifying) return "expired";
    if (this.#stuck(now, view.bufferedBytes)) return "stuck";
    if (view.held) this.#lastHeardAt = now;
    if (now < this.#nextPingAt) return null;
    if (now - this.#lastHeardAt >= socketLimits.silenceMs) return "silent";
    this.#nextPingAt = Math.max(this.#nextPingAt + socketLimits.pingIntervalMs, now);
    return "ping";
  }

  #stuck(now: number, bufferedBytes: number): boolean {
    if (this.#sending !== null && this.#queuedBytes - bufferedBytes >= this.#sending.bytes) {
      this.#sending = null;
    }
    if (bufferedBytes === 0) return false;
    this.#sending ??= { bytes: this.#queuedBytes, at: now };
    return now - this.#sending.at >= socketLimits.frameSendMs;
  }
}
