/** Blob store owned by another server: reads only, and does not store thumbnails. */
import { ServiceError } from "../../errors.ts";
import type { BlobStore } from "./blob_store.ts";

/** Disposing of it disposes of `store`. */
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
