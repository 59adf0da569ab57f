/** The objects of a replica in a folder or a bucket. */
import { randomBytes } from "node:crypto";
import type { LocationProbe } from "../../../kit/locations/location_probe.ts";
import {
  LocationError,
  locationText,
  type ObjectInfo,
  type ObjectLocation,
  ObjectLostError,
  type ObjectStore,
  readObject,
} from "../../../kit/locations/object_store.ts";
import { openStore } from "../../../kit/locations/open_store.ts";
import { downloadArchive } from "../../backups/stored_archives.ts";
import { opsLimits, replicationLimits } from "../../limits.ts";
import { GENERATIONS, probedAt, probeFile, PROBES } from "../names.ts";
import { ReplicaError } from "../replica_error.ts";

export type TargetObject = Pick<ObjectInfo, "name" | "size">;

/** Names have slashes between their parts. Methods throw a `ReplicaError`. */
export interface ReplicaTarget extends AsyncDisposable {
  /** Display name. */
  readonly location: string;
  /** Whether old objects may be removed while they are read, without being merged into others. */
  readonly isTrimmed?: boolean;
  /** Lists the objects whose names begin with a prefix, in any order. */
  list(prefix: string): AsyncIterable<TargetObject>;
  /** Returns an object of bounded size; `null` if there is none. */
  read(name: string): Promise<Uint8Array<ArrayBuffer> | null>;
  /**
   * Returns the bytes of an object of any size, to be read to the end or canceled; `null` if there is none. Throws an
   * `ObjectGoneError` if the object is removed before it was read.
   */
  stream(name: string): Promise<AsyncIterable<Uint8Array<ArrayBuffer>> | null>;
  /** Downloads an object of any size into a new file; `false` if there is no such object. */
  download(name: string, path: string): Promise<boolean>;
  /** Writes an object whose name identifies its contents: complete and durable when this resolves. */
  put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** The same for a file of any size. */
  upload(name: string, path: string): Promise<void>;
  /** Writes a small object unless it exists: of several concurrent calls at most one returns `true`. */
  create(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<boolean>;
  /** Removes an object that may not exist. */
  remove(name: string): Promise<void>;
  /**
   * Removes leftovers of killed processes and of location tests that are old at a time, ms since the epoch, which must not be
   * ahead of real time even if the machine's clock is.
   */
  removeLeftovers(at: number): Promise<void>;
}

/** An object was removed while it was read. */
export class ObjectGoneError extends Error {
  constructor(name: string) {
    super(`"${name}" was removed while it was read`);
  }
}

export interface TargetOptions {
  readonly signal?: AbortSignal;
  /** Whether a missing folder is created. */
  readonly make: boolean;
}

/** Opens a location. Throws a `ReplicaError`. */
export async function openTarget(location: ObjectLocation, options: TargetOptions): Promise<ReplicaTarget> {
  const opening = openStore(location, {
    requestMs: replicationLimits.requestMs,
    attempts: replicationLimits.requestAttempts,
    partBytes: opsLimits.bucketPartBytes,
    ...options,
  });
  return new StoreTarget(await explained(opening, options.signal), options.signal);
}

/** Tests a location with an object that no replica reads. */
export function targetProbe(location: ObjectLocation): LocationProbe {
  return {
    place: locationText(location),
    name: probeFile(Date.now(), randomBytes(16).toString("hex")),
    open: () => openStore(location),
  };
}

/** A replica in an object store, which is disposed with it. */
export class StoreTarget implements ReplicaTarget {
  readonly #store: ObjectStore;
  readonly #signal: AbortSignal | undefined;

  constructor(store: ObjectStore, signal?: AbortSignal) {
    this.#store = store;
    this.#signal = signal;
  }

  get location(): string {
    return this.#store.location;
  }

  async *list(prefix: string): AsyncGenerator<TargetObject> {
    try {
      yield* this.#store.list(prefix);
    } catch (error) {
      throw explain(error, this.#signal);
    }
  }

  async read(name: string): Promise<Uint8Array<ArrayBuffer> | null> {
    return await this.#explained(readObject(this.#store, name, replicationLimits.objectBytesMax));
  }

  async stream(name: string): Promise<AsyncIterable<Uint8Array<ArrayBuffer>> | null> {
    const body = await this.#explained(this.#store.get(name));
    return body === null ? null : this.#chunks(name, body);
  }

  async download(name: string, path: string): Promise<boolean> {
    return await this.#explained(downloadArchive(this.#store, { name, path }));
  }

  async put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#explained(this.#store.put(name, bytes));
  }

  async upload(name: string, path: string): Promise<void> {
    await this.#explained(this.#store.putFile(name, path));
  }

  async create(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<boolean> {
    return await this.#explained(this.#store.put(name, bytes, { ifAbsent: true }));
  }

  async remove(name: string): Promise<void> {
    await this.#explained(this.#store.delete(name));
  }

  async removeLeftovers(at: number): Promise<void> {
    // Parts of unfinished uploads cost money and appear in no listing of objects. They remain if the key or the service does
    // not permit listing them.
    const { partialKeptMs, uploadKeptMs } = replicationLimits;
    const before = at - (this.#store.kind === "folder" ? partialKeptMs : uploadKeptMs);
    await this.#store.removeUnfinished(GENERATIONS, { before }).catch(() => {});
    await this.#removeTestObjects(at).catch(() => {});
  }

  async #removeTestObjects(at: number): Promise<void> {
    let removed = 0;
    for await (const { name } of this.list(PROBES)) {
      if (probedAt(name) >= at - replicationLimits.probeKeptMs) continue;
      if (removed++ === replicationLimits.probesRemovedMax) return;
      await this.remove(name);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store[Symbol.asyncDispose]();
  }

  async *#chunks(
    name: string,
    body: AsyncIterable<Uint8Array<ArrayBuffer>>,
  ): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    try {
      yield* body;
    } catch (error) {
      if (error instanceof ObjectLostError && error.reason === "gone") throw new ObjectGoneError(name);
      throw explain(error, this.#signal);
    }
  }

  async #explained<Result>(running: Promise<Result>): Promise<Result> {
    return await explained(running, this.#signal);
  }
}

async function explained<Result>(running: Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
  try {
    return await running;
  } catch (error) {
    throw explain(error, signal);
  }
}

function explain(cause: unknown, signal: AbortSignal | undefined): unknown {
  if (cause instanceof ReplicaError || signal?.aborted) return cause;
  const message = cause instanceof Error ? cause.message : String(cause);
  return new ReplicaError(cause instanceof LocationError ? cause.fault : "away", message, { cause });
}
