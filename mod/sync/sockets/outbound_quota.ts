/**
 * The outbound side of sockets. Each counts the data that its client has not taken, and one quota bounds the sum: Transitions
 * wait while it is exhausted, and stuck large sockets are aborted.
 */
import type { Log } from "../../kit/log.ts";
import { socketLimits } from "../../limits.ts";
import type { Channel } from "./socket.ts";

/** The outbound side of one socket, from open to close. Frames leave in the order in which they are sent, none after the end. */
export class SocketOutput {
  readonly channel: Channel;
  /** Whether frames are sent. Cleared by the owner at its end. */
  isOpen = true;
  /** Bytes buffered at the last check, plus those sent since. */
  bytes = 0;
  /** Total bytes sent. */
  queuedBytes = 0;
  /** Whether almost nothing was acknowledged between the last two checks. */
  stalled = false;
  checkedAt = -1;
  /** Bytes acknowledged at `checkedAt`. */
  ackedBytes = 0;
  /** Whether it was aborted. */
  cut = false;
  /** Bytes sent since the last Transition. Bounds unread responses. */
  #bytesSinceTransition = 0;
  readonly #quota: OutboundQuota;

  constructor(channel: Channel, quota: OutboundQuota) {
    this.channel = channel;
    this.#quota = quota;
  }

  get bufferedBytes(): number {
    return this.channel.bufferedAmount;
  }

  /** Whether the client reads too slowly to be sent Transitions. */
  get isSlow(): boolean {
    return this.channel.bufferedAmount > socketLimits.bufferedBytesMax;
  }

  /** Whether the quota allows a Transition of this length. */
  canSend(chars: number): boolean {
    return this.#quota.canSend(chars);
  }

  /** Does not check the quota: the caller has. */
  sendTransition(frame: string): void {
    if (!this.isOpen) return;
    this.#queue(frame);
    this.#bytesSinceTransition = 0;
  }

  /** Sends a response or a Ping. Returns `false` if the client does not read its responses. */
  send(frame: string): boolean {
    if (!this.isOpen) return true;
    this.#bytesSinceTransition += this.#queue(frame);
    const unread = Math.min(this.channel.bufferedAmount, this.#bytesSinceTransition);
    return unread <= socketLimits.bufferedBytesFatal;
  }

  #queue(frame: string): number {
    const { channel } = this;
    const before = channel.bufferedAmount;
    channel.send(frame);
    const bytes = channel.bufferedAmount - before;
    this.#quota.queued(this, bytes);
    return bytes;
  }
}

export class OutboundQuota {
  readonly #bytesMax: number;
  readonly #now: () => number;
  readonly #log: Log;
  readonly #sockets = new Set<SocketOutput>();
  #bytes = 0;
  #checkedAt = 0;
  /** When the last large frame was sent. Further ones are delayed because sending one blocks the event loop. */
  #largeAt = -Infinity;
  #pauseMs = 0;
  #abortedCount = 0;
  #abortLoggedAt = -Infinity;

  constructor({ bytesMax, now, log }: {
    readonly bytesMax: number;
    readonly now: () => number;
    readonly log: Log;
  }) {
    this.#bytesMax = bytesMax;
    this.#now = now;
    this.#log = log;
  }

  /** Upper bound of the buffered bytes: includes those transmitted since the last check. */
  get bytes(): number {
    return this.#bytes;
  }

  open(channel: Channel): SocketOutput {
    const socket = new SocketOutput(channel, this);
    this.#sockets.add(socket);
    return socket;
  }

  close(socket: SocketOutput): void {
    if (this.#sockets.delete(socket)) this.#bytes -= socket.bytes;
  }

  /** Records bytes sent to a socket. */
  queued(socket: SocketOutput, bytes: number): void {
    socket.bytes += bytes;
    socket.queuedBytes += bytes;
    this.#bytes += bytes;
    const { largeChars, largePauseMsPerMiB } = socketLimits;
    if (bytes <= largeChars) return;
    this.#largeAt = this.#now();
    this.#pauseMs = largePauseMsPerMiB * bytes / 2 ** 20;
  }

  /** Whether a frame may be sent: small ones always, one above the quota when almost nothing is buffered. */
  canSend(chars: number): boolean {
    if (chars <= socketLimits.unreservedFrameCharsMax) return true;
    if (chars > socketLimits.largeChars && this.#isPaused) return false;
    if (this.#hasSpace(chars)) return true;
    this.#checkSockets();
    return this.#hasSpace(chars);
  }

  get #isPaused(): boolean {
    const ms = this.#now() - this.#largeAt;
    // The clock may have been set back.
    return ms >= 0 && ms < this.#pauseMs;
  }

  #hasSpace(chars: number): boolean {
    return this.#bytes + chars <= this.#bytesMax || this.#bytes <= this.#bytesMax / 4;
  }

  /** Updates usage and aborts sockets that hold too much. Call periodically. */
  tick(): void {
    if (this.#bytes > this.#bytesMax / 2) this.#checkSockets();
  }

  #checkSockets(): void {
    const now = this.#now();
    if (now - this.#checkedAt < socketLimits.outboundPollMs) return;
    this.#checkedAt = now;
    for (const socket of this.#sockets) if (socket.bytes > 0) this.#checkSocket(socket, now);
    // Transitions wait for space, so at half of the quota it is already under pressure.
    if (this.#bytes > this.#bytesMax / 2) {
      this.#abortLargest((socket) => socket.stalled, this.#bytesMax / 2);
    }
    if (this.#bytes > this.#bytesMax * 2) this.#abortLargest(() => true, this.#bytesMax);
  }

  #checkSocket(socket: SocketOutput, now: number): void {
    const { channel } = socket;
    const buffered = socket.cut ? 0 : channel.bufferedAmount;
    this.#bytes += buffered - socket.bytes;
    socket.bytes = buffered;
    const taken = channel.acknowledgedBytes ?? socket.queuedBytes - buffered;
    // An old check says little: the data buffered now may be recent.
    const old = now - socket.checkedAt > 2 * socketLimits.stallCheckMs;
    if (socket.checkedAt < 0 || old || buffered === 0) {
      socket.stalled = false;
    } else if (now - socket.checkedAt < socketLimits.stallCheckMs) {
      return;
    } else {
      const wanted = socketLimits.stallBytesPerSecond * (now - socket.checkedAt) / 1000;
      socket.stalled = taken - socket.ackedBytes < Math.min(wanted, buffered);
    }
    socket.checkedAt = now;
    socket.ackedBytes = taken;
  }

  #abortLargest(mayAbort: (socket: SocketOutput) => boolean, bytesMax: number): void {
    const candidates = [...this.#sockets].filter((socket) =>
      !socket.cut && socket.bytes > 0 && mayAbort(socket)
    );
    candidates.sort((a, b) => b.bytes - a.bytes);
    for (const socket of candidates) {
      if (this.#bytes <= bytesMax) return;
      this.cut(socket);
    }
  }

  /** Aborts a socket. Its unsent data is dropped. */
  cut(socket: SocketOutput): void {
    if (socket.cut) return;
    socket.cut = true;
    this.#logAborted(socket.bytes);
    this.#bytes -= socket.bytes;
    socket.bytes = 0;
    socket.channel.cut();
  }

  #logAborted(bytes: number): void {
    const count = ++this.#abortedCount;
    const now = this.#now();
    if (now - this.#abortLoggedAt < socketLimits.terminationLogMs) return;
    this.#abortLoggedAt = now;
    this.#log("warn", "Aborted sockets that do not read their data", { bytes, count });
  }
}
