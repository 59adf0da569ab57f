/** Metadata of a stored file. */
import type { StorageDoc } from "./tables.ts";

export interface StoredFile {
  readonly id: string;
  /** Name of its blob. */
  readonly blob: string;
  /** As given at upload, or `null`. */
  readonly contentType: string | null;
  readonly name: string | null;
  /** Of the contents, in hexadecimal. */
  readonly sha256: string;
  /** Bytes. */
  readonly size: number;
}

export function storedFile(doc: StorageDoc<"_storage">): StoredFile {
  return {
    id: doc._id,
    blob: doc.blob,
    contentType: doc.contentType ?? null,
    name: doc.name ?? null,
    sha256: doc.sha256,
    size: doc.size,
  };
}
