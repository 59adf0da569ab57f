/** The blobs of another server, which alone writes and removes them: this one reads, and keeps no thumbnails. */
import { ServiceError } from "../../errors.ts";
import type { BlobStore } from "./blob_store.ts";

/** Closes the store with itself. */
export function readOnlyBlobs(store: BlobStore): BlobStore {
  const refuse = () => Promise.reject(new ServiceError("read_only"));
  return {
    create: refuse,
    adopt: refuse,
    read: (name, part) => store.read(name, part),
    remove: () => Promise.resolve(),
    async *list() {},
    readDerivative: (name, derivative) => store.readDerivative(name, derivative),
    // It is made again for whoever asks next.
    writeDerivative: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
