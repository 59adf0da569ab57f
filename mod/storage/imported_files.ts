/** Stores imported files under new IDs that imported documents already refer to. */
import { createHash, randomBytes } from "node:crypto";
import { type CallPort, SystemCalls } from "../functions/system_calls.ts";
import type { BlobStore } from "./blobs/blob_store.ts";
import { storageLimits } from "./limits.ts";
import { system } from "./system_calls.ts";

export interface ImportedFile {
  readonly id: string;
  readonly creationTime: number;
  readonly contentType: string | null;
  readonly name?: string | null;
  readonly createdBy?: string | null;
  /** Expected SHA-256 of the contents in hexadecimal; `null` if unknown. */
  readonly sha256: string | null;
}

export class ImportedFileStore {
  readonly #calls: SystemCalls;
  readonly #store: BlobStore;

  constructor({ port, store }: { readonly port: CallPort; readonly store: BlobStore }) {
    this.#calls = new SystemCalls(port);
    this.#store = store;
  }

  async newIds(count: number): Promise<readonly string[]> {
    const ids: string[] = [];
    while (ids.length < count) {
      const next = Math.min(storageLimits.importedAtOnceMax, count - ids.length);
      ids.push(...await this.#calls.mutate(system.newFileIds, { count: next }));
    }
    return ids;
  }

  /** Stores a file and returns its size. Throws, storing nothing, if the contents do not match `sha256`. */
  async store(file: ImportedFile, contents: AsyncIterable<Uint8Array<ArrayBuffer>>): Promise<number> {
    const blob = randomBytes(16).toString("hex");
    const writer = await this.#store.create(blob);
    const hash = createHash("sha256");
    let size = 0;
    try {
      for await (const chunk of contents) {
        hash.update(chunk);
        size += chunk.length;
        await writer.write(chunk);
      }
      const sha256 = hash.digest("hex");
      if (file.sha256 !== null && file.sha256 !== sha256) throw new Error("its contents are damaged");
      await writer.commit();
      const { id: _id, creationTime: _creationTime, contentType, name = null, createdBy = null } = file;
      const row = {
        ...{ _id, _creationTime, blob, sha256, size },
        ...(contentType !== null && { contentType }),
        ...(name !== null && { name }),
        ...(createdBy !== null && { createdBy }),
      };
      await this.#calls.mutate(system.importFiles, { files: [row] });
      return size;
    } catch (error) {
      await writer.abort();
      throw error;
    }
  }
}
