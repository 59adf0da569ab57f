/** Quota of sent, unacknowledged data: Transitions wait while it is exhausted, and stuck large sockets are aborted. */
import { socketLimits } from "../../limits.ts";
import type { Channel } from "./socket.ts";

/** Usage of one socket, from open to close. */
export class OutboundAccount {
  readonly channel: Channel;
  /** Bytes buffered at the last check, plus those sent since. */
  bytes = 0;
  /** Whether almost nothing was acknowledged between the last two checks. */
  stalled = false;
  /** Whether it was aborted. */
  cut = false;
  checkedAt = -1;
  /** Bytes acknowledged at `checkedAt`. */
  ackedBytes = 0;
  /** Total bytes sent. */
  queuedBytes = 0;

  constructor(channel: Channel) {
    this.channel = channel;
  }
}

export class OutboundQuota {
  readonly #bytesMax: number;
  readonly #now: () => number;
  readonly #onCut: (bytes: number) => void;
  readonly #accounts = new Set<OutboundAccount>();
  #bytes = 0;
  #checkedAt = 0;
  /** When the last large frame was sent. Further ones are delayed because sending one blocks the event loop. */
  #largeAt = -Infinity;
  #pauseMs = 0;

  constructor({ bytesMax, now, onCut }: {
    readonly bytesMax: number;
    readonly now: () => number;
    /** Called for each aborted socket. */
    readonly onCut: (bytes: number) => void;
  }) {
    this.#bytesMax = bytesMax;
    this.#now = now;
    this.#onCut = onCut;
  }

  /** Upper bound of the buffered bytes: includes those transmitted since the last check. */
  get bytes(): number {
    return this.#bytes;
  }

  open(channel: Channel): OutboundAccount {
    const account = new OutboundAccount(channel);
    this.#accounts.add(account);
    return account;
  }

  close(account: OutboundAccount): void {
    if (this.#accounts.delete(account)) this.#bytes -= account.bytes;
  }

  /** Records bytes sent to a channel. */
  queued(account: OutboundAccount, bytes: number): void {
    account.bytes += bytes;
    account.queuedBytes += bytes;
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
    for (const account of this.#accounts) if (account.bytes > 0) this.#checkSocket(account, now);
    // Transitions wait for space, so at half of the quota it is already under pressure.
    if (this.#bytes > this.#bytesMax / 2) {
      this.#abortLargest((account) => account.stalled, this.#bytesMax / 2);
    }
    if (this.#bytes > this.#bytesMax * 2) this.#abortLargest(() => true, this.#bytesMax);
  }

  #checkSocket(account: OutboundAccount, now: number): void {
    const { channel } = account;
    const buffered = account.cut ? 0 : channel.bufferedAmount;
    this.#bytes += buffered - account.bytes;
    account.bytes = buffered;
    const taken = channel.acknowledgedBytes ?? account.queuedBytes - buffered;
    // An old check says little: the data buffered now may be recent.
    const old = now - account.checkedAt > 2 * socketLimits.stallCheckMs;
    if (account.checkedAt < 0 || old || buffered === 0) {
      account.stalled = false;
    } else if (now - account.checkedAt < socketLimits.stallCheckMs) {
      return;
    } else {
      const wanted = socketLimits.stallBytesPerSecond * (now - account.checkedAt) / 1000;
      account.stalled = taken - account.ackedBytes < Math.min(wanted, buffered);
    }
    account.checkedAt = now;
    account.ackedBytes = taken;
  }

  #abortLargest(mayAbort: (account: OutboundAccount) => boolean, bytesMax: number): void {
    const candidates = [...this.#accounts].filter((account) =>
      !account.cut && account.bytes > 0 && mayAbort(account)
    );
    candidates.sort((a, b) => b.bytes - a.bytes);
    for (const account of candidates) {
      if (this.#bytes <= bytesMax) return;
      this.cut(account);
    }
  }

  /** Aborts a socket. Its unsent data is dropped. */
  cut(account: OutboundAccount): void {
    if (account.cut) return;
    account.cut = true;
    this.#onCut(account.bytes);
    this.#bytes -= account.bytes;
    account.bytes = 0;
    account.channel.cut();
  }
}
