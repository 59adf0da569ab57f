/** Backs `ctx.storage` in actions. Contents are transferred in chunks, because they do not fit into one message. */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { ServiceError, UserError } from "../errors.ts";
import { type MainAction, mainAction } from "../functions/main_actions.ts";
import type { SystemCalls } from "../functions/system_calls.ts";
import { fileApiLimits } from "../functions/limits.ts";
import { storageLimits } from "./limits.ts";
import type { BlobIntake, BlobIntakes } from "./uploads/blob_intake.ts";
import type { BlobStore } from "./blobs/blob_store.ts";
import { cleanFileName, type FileTraffic, isContentType } from "./stored_file.ts";
import type { FileMetadataCache } from "./file_metadata_cache.ts";
import { system } from "./system_calls.ts";

interface OpenFile {
  readonly intake: BlobIntake;
  readonly name: string | null;
  readonly contentType: string | null;
  readonly createdBy: string | null;
  usedAt: number;
}

export interface ActionFilesOptions {
  readonly calls: SystemCalls;
  readonly facts: FileMetadataCache;
  readonly store: BlobStore;
  readonly intakes: BlobIntakes;
  readonly traffic: FileTraffic;
  readonly now: () => number;
}

const base64 = z.base64().max(Math.ceil(fileApiLimits.actionChunkBytes / 3) * 4);

export class ActionFiles implements AsyncDisposable {
  readonly #options: ActionFilesOptions;
  readonly #open = new Map<string, OpenFile>();
  /** Files being opened. */
  #beginning = 0;
  /** Closes files abandoned by their actions. Runs while files are open. */
  #timer: ReturnType<typeof setInterval> | null = null;

  constructor(options: ActionFilesOptions) {
    this.#options = options;
  }

  /** By function path. */
  get actions(): ReadonlyMap<string, MainAction> {
    return new Map([
      [
        "_ctx/storage:beginFile",
        mainAction(
          z.strictObject({ name: z.string().nullable(), contentType: z.string().nullable() }),
          ({ name, contentType }, { userId, adminId }) =>
            this.#begin({ name: cleanFileName(name), contentType, createdBy: userId ?? adminId }),
        ),
      ],
      [
        "_ctx/storage:appendToFile",
        mainAction(
          z.strictObject({ upload: z.string(), bytes: base64 }),
          ({ upload, bytes }) => this.#append(upload, Uint8Array.fromBase64(bytes)),
        ),
      ],
      [
        "_ctx/storage:finishFile",
        mainAction(z.strictObject({ upload: z.string() }), ({ upload }) => this.#finish(upload)),
      ],
      [
        "_ctx/storage:readFile",
        mainAction(
          z.strictObject({ id: z.string(), start: z.int().min(0), end: z.int().min(0) }),
          ({ id, start, end }) => this.#read(id, { start, end }),
        ),
      ],
    ]);
  }

  /** Stores a file whose content is in memory. Returns its id. */
  async store(
    { content, name, contentType, createdBy }: {
      readonly content: Uint8Array<ArrayBuffer>;
      readonly name: string | null;
      readonly contentType: string;
      readonly createdBy: string | null;
    },
  ): Promise<string> {
    const upload = await this.#begin({ name: cleanFileName(name), contentType, createdBy });
    const step = fileApiLimits.actionChunkBytes;
    for (let start = 0; start < content.length; start += step) {
      await this.#append(upload, content.subarray(start, start + step));
    }
    return await this.#finish(upload);
  }

  /** Discards unfinished files. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const upload of [...this.#open.keys()]) await this.#close(upload);
  }

  async #begin(
    { name, contentType, createdBy }: Pick<OpenFile, "name" | "contentType" | "createdBy">,
  ): Promise<string> {
    const { intakes, now } = this.#options;
    if (contentType !== null && !isContentType(contentType)) throw new ServiceError("invalid_content_type");
    if (this.#open.size + this.#beginning >= storageLimits.actionUploadsMax) {
      throw new ServiceError("overloaded");
    }
    const upload = randomUUID();
    this.#beginning++;
    try {
      this.#open.set(upload, { intake: await intakes.begin(), name, contentType, createdBy, usedAt: now() });
    } finally {
      this.#beginning--;
    }
    this.#timer ??= setInterval(() => this.#closeIdle(), storageLimits.uploadStallMs);
    return upload;
  }

  async #append(upload: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const file = this.#find(upload);
    file.usedAt = this.#options.now();
    try {
      await file.intake.write(bytes);
    } catch (error) {
      await this.#close(upload);
      throw error;
    }
  }

  async #finish(upload: string): Promise<string> {
    const { calls, traffic, now } = this.#options;
    const { intake, name, contentType, createdBy } = this.#find(upload);
    try {
      const file = {
        ...await intake.finish(),
        ...(name !== null && { name }),
        ...(contentType !== null && { contentType }),
        ...(createdBy !== null && { createdBy }),
      };
      const id = await calls.mutate(system.commitFile, { token: null, file, now: now() });
      traffic.uploaded(file.size);
      return id;
    } finally {
      await this.#close(upload);
    }
  }

  async #read(id: string, { start, end }: { start: number; end: number }): Promise<string | null> {
    const file = await this.#options.facts.find(id);
    if (file === null) return null;
    if (start > end || end >= file.size || end - start >= fileApiLimits.actionChunkBytes) {
      throw new RangeError("The range is outside the file or too long");
    }
    const stream = await this.#options.store.read(file.blob, { start, end });
    return stream === null ? null : (await new Response(stream).bytes()).toBase64();
  }

  #find(upload: string): OpenFile {
    const file = this.#open.get(upload);
    if (file === undefined) throw new UserError("upload_failed", "The upload was abandoned for too long");
    return file;
  }

  async #close(upload: string): Promise<void> {
    const file = this.#open.get(upload);
    this.#open.delete(upload);
    if (this.#open.size === 0 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
    await file?.intake[Symbol.asyncDispose]();
  }

  #closeIdle(): void {
    const since = this.#options.now() - storageLimits.uploadStallMs;
    for (const [upload, { usedAt }] of [...this.#open]) {
      if (usedAt <= since) void this.#close(upload);
    }
  }
}
