/**
 * One budget for what all sockets were sent and have not taken. A Transition that finds no room waits; whoever holds much
 * and takes next to nothing is cut off, the largest first.
 */
import { socketLimits } from "../../limits.ts";
import type { Channel } from "./channel.ts";

/** What one socket holds of the budget, from its opening until it is closed. */
export class UnsentAccount {
  readonly channel: Channel;
  /** What waits to be sent, as of the last look, and what was added since. */
  bytes = 0;
  /** Whether next to nothing was taken between the last two looks. */
  standing = false;
  /** It was cut off: what it holds is on its way back. */
  cut = false;
  lookedAt = -1;
  /** Bytes taken by the other side, at `lookedAt`. */
  taken = 0;
  /** Bytes handed to the channel, ever. */
  queued = 0;

  constructor(channel: Channel) {
    this.channel = channel;
  }
}

export class UnsentBudget {
  readonly #bytesMax: number;
  readonly #now: () => number;
  readonly #onCut: (bytes: number) => void;
  readonly #accounts = new Set<UnsentAccount>();
  #bytes = 0;
  #lookedAt = 0;
  /** Nothing large is sent for a while after it: what is large takes long to hand over, and nobody else is served meanwhile. */
  #largeAt = -Infinity;
  #pauseMs = 0;

  constructor({ bytesMax, now, onCut }: {
    readonly bytesMax: number;
    readonly now: () => number;
    /** Told of each socket that is cut off. */
    readonly onCut: (bytes: number) => void;
  }) {
    this.#bytesMax = bytesMax;
    this.#now = now;
    this.#onCut = onCut;
  }

  /** Bytes that wait, at most: what has left since the last look is still counted. */
  get bytes(): number {
    return this.#bytes;
  }

  open(channel: Channel): UnsentAccount {
    const account = new UnsentAccount(channel);
    this.#accounts.add(account);
    return account;
  }

  close(account: UnsentAccount): void {
    if (this.#accounts.delete(account)) this.#bytes -= account.bytes;
  }

  /** So much more was handed to a channel. */
  queued(account: UnsentAccount, bytes: number): void {
    account.bytes += bytes;
    account.queued += bytes;
    this.#bytes += bytes;
    const { largeChars, largePauseMsPerMiB } = socketLimits;
    if (bytes <= largeChars) return;
    this.#largeAt = this.#now();
    this.#pauseMs = largePauseMsPerMiB * bytes / 2 ** 20;
  }

  /**
   * Whether a frame of so many characters may be handed to a channel now. Small ones always may. One that is larger than
   * the whole budget may when next to nothing else waits.
   */
  hasRoom(chars: number): boolean {
    if (chars <= socketLimits.roomlessCharsMax) return true;
    if (chars > socketLimits.largeChars && this.#pauses) return false;
    if (this.#fits(chars)) return true;
    this.#lookAround();
    return this.#fits(chars);
  }

  get #pauses(): boolean {
    const ms = this.#now() - this.#largeAt;
    // Somebody may have set the clock back.
    return ms >= 0 && ms < this.#pauseMs;
  }

  #fits(chars: number): boolean {
    return this.#bytes + chars <= this.#bytesMax || this.#bytes <= this.#bytesMax / 4;
  }

  /** Looks at what has left, and cuts off whoever holds too much. To be called every now and then. */
  tick(): void {
    if (this.#bytes > this.#bytesMax / 2) this.#lookAround();
  }

  #lookAround(): void {
    const now = this.#now();
    if (now - this.#lookedAt < socketLimits.unsentLookMs) return;
    this.#lookedAt = now;
    for (const account of this.#accounts) if (account.bytes > 0) this.#look(account, now);
    // Waiting Transitions show that there is no room, so that half of the budget is already under pressure.
    if (this.#bytes > this.#bytesMax / 2) this.#relieve((account) => account.standing, this.#bytesMax / 2);
    if (this.#bytes > this.#bytesMax * 2) this.#relieve(() => true, this.#bytesMax);
  }

  #look(account: UnsentAccount, now: number): void {
    const { channel } = account;
    const buffered = account.cut ? 0 : channel.bufferedAmount;
    this.#bytes += buffered - account.bytes;
    account.bytes = buffered;
    const taken = channel.takenBytes ?? account.queued - buffered;
    // A look of long ago tells of another time: what is there now may have come a moment ago.
    const old = now - account.lookedAt > 2 * socketLimits.standingMs;
    if (account.lookedAt < 0 || old || buffered === 0) {
      account.standing = false;
    } else if (now - account.lookedAt < socketLimits.standingMs) {
      return;
    } else {
      const wanted = socketLimits.standingBytesPerSecond * (now - account.lookedAt) / 1000;
      account.standing = taken - account.taken < Math.min(wanted, buffered);
    }
    account.lookedAt = now;
    account.taken = taken;
  }

  #relieve(mayGo: (account: UnsentAccount) => boolean, bytesMax: number): void {
    const candidates = [...this.#accounts].filter((account) =>
      !account.cut && account.bytes > 0 && mayGo(account)
    );
    candidates.sort((a, b) => b.bytes - a.bytes);
    for (const account of candidates) {
      if (this.#bytes <= bytesMax) return;
      this.cut(account);
    }
  }

  /** Cuts a socket off: what it was sent is dropped. */
  cut(account: UnsentAccount): void {
    if (account.cut) return;
    account.cut = true;
    this.#onCut(account.bytes);
    this.#bytes -= account.bytes;
    account.bytes = 0;
    account.channel.cut();
  }
}
