/**
 * Blobs of files by name (32 hexadecimal digits), as objects of a folder or a bucket. Derivatives are small files made from
 * a blob, such as thumbnails. They are removed with the blob, may be lost at any time, and can be re-created.
 *
 *     folder: <two digits>/<name>   derived/<two digits>/<name>/<derivative>   tmp/: temporary files
 *     bucket: blobs/<name>          derived/<name>/<derivative>
 */
import { join } from "node:path";
import { ServiceError } from "../../errors.ts";
import type { ByteRange } from "../../kit/http_request.ts";
import { removeIfThere } from "../../kit/durable_files.ts";
import type { LocationProbe } from "../../kit/locations/location_probe.ts";
import {
  locationText,
  type ObjectBody,
  type ObjectLocation,
  type ObjectStore,
  type ObjectWriter,
} from "../../kit/locations/object_store.ts";
import { openStore } from "../../kit/locations/open_store.ts";
import { storageLimits } from "../limits.ts";

export type BlobWriter = ObjectWriter;

export interface ListedBlob {
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly writtenAt: number;
}

export interface BlobStore extends AsyncDisposable {
  /** Starts a new blob. It is not readable until committed. */
  create(name: string): Promise<BlobWriter>;
  /** Moves a synced local file into the store. Succeeds if an earlier call did. */
  adopt(name: string, path: string): Promise<void>;
  /** Returns the contents of a blob or of a range inside it; `null` if the blob does not exist. */
  read(name: string, part: ByteRange | null): Promise<ObjectBody | null>;
  remove(name: string): Promise<void>;
  /** Lists all blobs, including names that only have derivatives left. */
  list(): AsyncIterable<ListedBlob>;
  readDerivative(name: string, derivative: string): Promise<Uint8Array<ArrayBuffer> | null>;
  writeDerivative(name: string, derivative: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
}

export interface BlobStoreOptions {
  /** Whether another server may still be writing: its unfinished blobs are left alone unless they are known to be old. */
  readonly shared?: boolean;
  /** Whether another server owns the blobs: nothing is written or removed. */
  readonly readOnly?: boolean;
  /** If set, the location may be unreachable at first; called with the error. */
  readonly later?: ((error: unknown) => void) | undefined;
  readonly now?: () => number;
}

const TEMPORARY_FOLDER = "tmp";
const DERIVED = "derived/";
/** Subfolders of blobs. The folder also has others, such as that of unfinished uploads. */
const SHARD = /^[0-9a-f]{2}$/;

/** Opens or creates the blobs of a location and removes unfinished ones. Throws a `LocationError`. */
export async function openBlobs(
  location: ObjectLocation,
  { shared = false, readOnly = false, later, now = Date.now }: BlobStoreOptions = {},
): Promise<BlobStore> {
  const isFolder = location.kind === "folder";
  if (isFolder && !shared) await removeIfThere(join(location.path, TEMPORARY_FOLDER));
  const store = await openStore(location, {
    make: true,
    temporaryFolder: TEMPORARY_FOLDER,
  });
  const blobs = new ObjectBlobs(store, isFolder ? location.path : null);
  if (isFolder) return blobs;
  const before = now() - storageLimits.s3UnfinishedKeepMs;
  const prepared = readOnly
    ? store.head(blobs.objectOf("none"))
    : store.removeUnfinished("blobs/", shared ? { before } : {});
  if (later !== undefined) {
    prepared.catch(later);
    return blobs;
  }
  try {
    await prepared;
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
  return blobs;
}

/** Tests a location with a blob that no document references; the cleanup of orphans removes leftovers. */
export function blobsProbe(location: ObjectLocation): LocationProbe {
  const name = crypto.randomUUID().replaceAll("-", "");
  return {
    place: locationText(location),
    name: location.kind === "folder" ? `${name.slice(0, 2)}/${name}` : `blobs/${name}`,
    open: () => openStore(location, { temporaryFolder: TEMPORARY_FOLDER }),
  };
}

/** Blobs owned by another server. Disposing of them disposes of `store`. */
export function readOnlyBlobs(store: BlobStore): BlobStore {
  const refuse = () => Promise.reject(new ServiceError("read_only"));
  return {
    create: refuse,
    adopt: refuse,
    read: (name, part) => store.read(name, part),
    remove: () => Promise.resolve(),
    async *list() {},
    readDerivative: (name, derivative) => store.readDerivative(name, derivative),
    // Thumbnails are made again for the next request.
    writeDerivative: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

class ObjectBlobs implements BlobStore {
  readonly #store: ObjectStore;
  /** The folder over whose subfolders blobs are distributed. */
  readonly #folder: string | null;

  constructor(store: ObjectStore, folder: string | null) {
    this.#store = store;
    this.#folder = folder;
  }

  objectOf(name: string): string {
    return this.#folder !== null ? `${name.slice(0, 2)}/${name}` : `blobs/${name}`;
  }

  async create(name: string): Promise<BlobWriter> {
    return await this.#store.create(this.objectOf(name));
  }

  async adopt(name: string, path: string): Promise<void> {
    await this.#store.putFile(this.objectOf(name), path, { move: true });
  }

  async read(name: string, part: ByteRange | null): Promise<ObjectBody | null> {
    return await this.#store.get(this.objectOf(name), part);
  }

  async remove(name: string): Promise<void> {
    await this.#store.deleteFolder(this.#derivedFolder(name));
    await this.#store.delete(this.objectOf(name));
  }

  async *list(): AsyncIterable<ListedBlob> {
    for (const prefix of this.#folder !== null ? await shardsIn(this.#folder) : ["blobs/"]) {
      for await (const { name, writtenAt } of this.#store.list(prefix)) {
        yield { name: name.slice(prefix.length), writtenAt };
      }
    }
    let previous = "";
    for await (const { name: path, writtenAt } of this.#store.list(DERIVED)) {
      const name = path.split("/").at(-2) ?? "";
      if (name !== previous) yield { name, writtenAt };
      previous = name;
    }
  }

  async readDerivative(name: string, derivative: string): Promise<Uint8Array<ArrayBuffer> | null> {
    const body = await this.#store.get(`${this.#derivedFolder(name)}/${derivative}`);
    return body === null ? null : await new Response(body).bytes();
  }

  async writeDerivative(name: string, derivative: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#store.put(`${this.#derivedFolder(name)}/${derivative}`, bytes, { volatile: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store[Symbol.asyncDispose]();
  }

  #derivedFolder(name: string): string {
    return this.#folder !== null ? `${DERIVED}${name.slice(0, 2)}/${name}` : DERIVED + name;
  }
}

/** The existing subfolders of blobs, read once: each start lists all blobs, and looking for 256 folders takes 40 ms. */
async function shardsIn(folder: string): Promise<string[]> {
  const shards: string[] = [];
  try {
    for await (const { name } of Deno.readDir(folder)) if (SHARD.test(name)) shards.push(`${name}/`);
  } catch (error) {
    // The store reports a missing folder when it lists the derivatives.
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  return shards.sort();
}
