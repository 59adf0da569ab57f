/** Where a replica lies: the port that the folder and the bucket implement. */

/** An object at a target. */
export interface TargetObject {
  readonly name: string;
  /** Bytes. */
  readonly size: number;
}

/** Names have slashes between their parts. Methods throw a `ReplicaError` that says whose trouble it is. */
export interface ReplicaTarget extends AsyncDisposable {
  /** For people. */
  readonly place: string;
  /** Whether what is old goes however long somebody has been reading it, and without becoming a part of anything else. */
  readonly isTrimmed?: boolean;
  /** Objects whose names begin with this, in any order. */
  list(begin: string): AsyncIterable<TargetObject>;
  /** An object of bounded size; `null` when there is none. */
  read(name: string): Promise<Uint8Array<ArrayBuffer> | null>;
  /**
   * The bytes of an object of any size some at a time, to be read to the end or given up; `null` when there is none. Throws an
   * `ObjectGoneError` when it goes meanwhile and the rest cannot be had any more.
   */
  stream(name: string): Promise<AsyncIterable<Uint8Array<ArrayBuffer>> | null>;
  /** Brings an object of any size into a file, which must not be there; `false` when there is none. */
  download(name: string, path: string): Promise<boolean>;
  /** Writes an object under a name that stands for its contents: whole and durable when this resolves. */
  put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** The same for a file of any size. */
  upload(name: string, path: string): Promise<void>;
  /** Writes a small object unless there is one of this name: of many who try at once one gets `true`. */
  create(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<boolean>;
  /** Removes an object; there may be none. */
  remove(name: string): Promise<void>;
  /**
   * Removes what killed processes left half written, and what tries of the place have left, when it is old at a time, ms since
   * the epoch, that does not go ahead with the machine's clock. What may not be looked for stays.
   */
  tidy(at: number): Promise<void>;
}

/** An object went while it was read. */
export class ObjectGoneError extends Error {
  constructor(name: string) {
    super(`"${name}" went while it was read`);
  }
}
