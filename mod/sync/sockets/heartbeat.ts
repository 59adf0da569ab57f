/** Tracks pings, silence, token expiry and stalled sends of one socket. Pure: the connection polls it with the time. */
import { socketLimits } from "../../limits.ts";
import type { SocketOutput } from "./outbound_quota.ts";

/** An action that is due. */
export type HeartbeatEvent = "ping" | "silent" | "expired" | "stuck";

export interface SocketActivity {
  /** Frames are queued behind a call. The client's Pongs are not handled, so silence does not count. */
  readonly blocked: boolean;
  /** A token is being verified. It may replace one that expires in the meantime. */
  readonly verifying: boolean;
  readonly output: Pick<SocketOutput, "queuedBytes" | "bufferedBytes">;
}

export class SocketHeartbeat {
  /** When the caller's token expires, `null` for never. Set by the connection. */
  expiresAt: number | null = null;
  #lastReceivedAt: number;
  #nextPingAt: number;
  /** Send position at time `at` that has not been transmitted yet. `null` when the buffer is empty. */
  #sending: { readonly bytes: number; readonly at: number } | null = null;

  constructor(now: number) {
    this.#lastReceivedAt = now;
    this.#nextPingAt = now + socketLimits.pingIntervalMs;
  }

  received(now: number): void {
    this.#lastReceivedAt = now;
  }

  /** When to call `check` at the latest. */
  get nextAt(): number {
    const sentBy = this.#sending === null ? Infinity : this.#sending.at + socketLimits.frameSendMs;
    return Math.min(this.#nextPingAt, this.expiresAt ?? Infinity, sentBy);
  }

  /** Returns the due action. "ping" is returned once per interval. The others end the socket. */
  check(now: number, view: SocketActivity): HeartbeatEvent | null {
    if (this.expiresAt !== null && now >= this.expiresAt && !view.verifying) return "expired";
    if (this.#sendStalled(now, view.output)) return "stuck";
    if (view.blocked) this.#lastReceivedAt = now;
    if (now < this.#nextPingAt) return null;
    if (now - this.#lastReceivedAt >= socketLimits.silenceMs) return "silent";
    this.#nextPingAt = Math.max(this.#nextPingAt + socketLimits.pingIntervalMs, now);
    return "ping";
  }

  #sendStalled(now: number, { queuedBytes, bufferedBytes }: SocketActivity["output"]): boolean {
    if (this.#sending !== null && queuedBytes - bufferedBytes >= this.#sending.bytes) this.#sending = null;
    if (bufferedBytes === 0) return false;
    this.#sending ??= { bytes: queuedBytes, at: now };
    return now - this.#sending.at >= socketLimits.frameSendMs;
  }
}
