/** One room: its members, the changes since the last frame, and the subscribers that receive frames. */

/** A member as others see it. `info` and `state` are JSON. */
export interface Member {
  readonly userId: string | null;
  /** Result of the app's function that authorized the member. */
  readonly info: string;
  readonly state: string;
  /** Number of the client's connection. The newest one owns the member: an older one may be lost without notice. */
  readonly connection: number;
}

export interface RoomFrame {
  /** Whether it replaces everything before: a `RoomState`. Otherwise a `RoomChanged`. */
  readonly whole: boolean;
  /** JSON, shared by all subscribers. */
  readonly text: string;
}

/** Receives the frames of its rooms: a socket, or a follower with sockets of its own. */
export interface RoomSubscriber {
  /** Returns `false` if it takes no frame now because it reads slowly. The next frame is then a whole one. */
  send(room: string, frame: RoomFrame): boolean;
  /** The member was not added because the room is full. */
  full(room: string, id: string): void;
}

interface Subscription {
  /** Members that belong to the subscriber. */
  members: number;
  /** Whether it has received everything before the current changes. */
  isCurrent: boolean;
}

export class Room<Kept extends Member = Member> {
  readonly name: string;
  readonly members: Map<string, Kept> = new Map();
  /** Characters sent with the last frame. */
  sentChars = 0;
  readonly #subscribers = new Map<RoomSubscriber, Subscription>();
  readonly #joined = new Set<string>();
  readonly #changed = new Set<string>();
  readonly #left = new Set<string>();

  constructor(name: string) {
    this.name = name;
  }

  /** Whether nothing uses it. */
  get isUnused(): boolean {
    return this.members.size === 0 && this.#subscribers.size === 0;
  }

  /** Adds a member of a subscriber, which receives a whole frame first. */
  subscribe(subscriber: RoomSubscriber): void {
    const known = this.#subscribers.get(subscriber);
    if (known === undefined) this.#subscribers.set(subscriber, { members: 1, isCurrent: false });
    else known.members++;
  }

  /** Removes a member of a subscriber, which receives nothing more after its last one. */
  unsubscribe(subscriber: RoomSubscriber): void {
    const known = this.#subscribers.get(subscriber);
    if (known !== undefined && --known.members === 0) this.#subscribers.delete(subscriber);
  }

  hasSubscriber(subscriber: RoomSubscriber): boolean {
    return this.#subscribers.has(subscriber);
  }

  /** Sends these subscribers a whole frame next. */
  resend(isMeant: (subscriber: RoomSubscriber) => boolean): void {
    for (const [subscriber, subscription] of this.#subscribers) {
      if (isMeant(subscriber)) subscription.isCurrent = false;
    }
  }

  /** Adds or replaces a member. */
  put(id: string, member: Kept): void {
    const known = this.members.get(id);
    this.members.set(id, member);
    if (known?.userId === member.userId && known.info === member.info) {
      if (known.state !== member.state && !this.#joined.has(id)) this.#changed.add(id);
      return;
    }
    this.#joined.add(id);
    this.#changed.delete(id);
    this.#left.delete(id);
  }

  remove(id: string): void {
    if (!this.members.delete(id)) return;
    this.#joined.delete(id);
    this.#changed.delete(id);
    this.#left.add(id);
  }

  /** Returns the changes since the last call as a `RoomChanged`; `null` if there are none. */
  takeChanges(): string | null {
    const parts: string[] = [];
    if (this.#joined.size > 0) {
      parts.push(`"joined":${this.#objectOf(this.#joined, memberText)}`);
    }
    if (this.#changed.size > 0) {
      parts.push(`"states":${this.#objectOf(this.#changed, ({ state }) => state)}`);
    }
    if (this.#left.size > 0) parts.push(`"left":${JSON.stringify([...this.#left])}`);
    for (const ids of [this.#joined, this.#changed, this.#left]) ids.clear();
    return parts.length === 0
      ? null
      : `{"type":"RoomChanged","room":${JSON.stringify(this.name)},${parts.join(",")}}`;
  }

  /**
   * Sends changes to subscribers that have everything before, and a whole frame to the others. Returns whether all of them have
   * received it.
   */
  deliver(changes: string | null): boolean {
    const change = changes === null ? null : { whole: false, text: changes };
    let whole: RoomFrame | null = null;
    let isComplete = true;
    this.sentChars = 0;
    for (const [subscriber, subscription] of this.#subscribers) {
      const frame = subscription.isCurrent ? change : whole ??= { whole: true, text: this.#wholeText() };
      if (frame === null) continue;
      subscription.isCurrent = subscriber.send(this.name, frame);
      if (subscription.isCurrent) this.sentChars += frame.text.length;
      else isComplete = false;
    }
    return isComplete;
  }

  #wholeText(): string {
    const members = this.#objectOf(this.members.keys(), memberText);
    return `{"type":"RoomState","room":${JSON.stringify(this.name)},"members":${members}}`;
  }

  /** Ids need no escapes. */
  #objectOf(ids: Iterable<string>, textOf: (member: Kept) => string): string {
    const parts: string[] = [];
    for (const id of ids) {
      const member = this.members.get(id);
      if (member !== undefined) parts.push(`"${id}":${textOf(member)}`);
    }
    return `{${parts.join(",")}}`;
  }
}

function memberText({ userId, info, state }: Member): string {
  return `{"userId":${JSON.stringify(userId)},"info":${info},"state":${state}}`;
}
