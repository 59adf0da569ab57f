/** `ctx.storage`: an API for authors over the functions of `mod/storage`. */
import { withHelp } from "../../../explained.ts";
import { fileApiLimits } from "../../limits.ts";
import { type ContextUser, failedAt } from "../runs/unhandled_failures.ts";

type Args = Record<string, unknown>;

/** Runs a function of the service: in the caller's transaction or, from an action, through main. */
export type RunStorage = (name: string, args: Args) => Promise<unknown>;

const SIGNED_URL_SECONDS = 3_600;

function checkedId(method: string, id: unknown): string {
  if (typeof id === "string") return id;
  throw new TypeError(`${method}() needs the id of a file, not ${id === null ? "null" : typeof id}`);
}

export class StorageReaderApi {
  readonly #query: RunStorage;

  constructor(query: RunStorage) {
    this.#query = query;
  }

  async getUrl(id: string): Promise<unknown> {
    return await this.#query("_ctx/storage:url", { id: checkedId("getUrl", id) });
  }

  async getSignedUrl(
    id: string,
    { ttlSeconds = SIGNED_URL_SECONDS }: { readonly ttlSeconds?: number } = {},
  ): Promise<unknown> {
    if (
      typeof ttlSeconds !== "number" || !(ttlSeconds > 0 && ttlSeconds <= fileApiLimits.signedUrlSecondsMax)
    ) {
      throw new RangeError(
        `getSignedUrl() needs ttlSeconds above 0 and up to ${fileApiLimits.signedUrlSecondsMax}, not ${
          String(ttlSeconds)
        }`,
      );
    }
    return await this.#query("_ctx/storage:signedUrl", { id: checkedId("getSignedUrl", id), ttlSeconds });
  }

  async getMetadata(id: string): Promise<unknown> {
    return await this.#query("_ctx/storage:metadata", { id: checkedId("getMetadata", id) });
  }
}

export class StorageWriterApi extends StorageReaderApi {
  readonly #mutate: RunStorage;
  readonly #asker: ContextUser;

  constructor(
    { query, mutate, asker }: {
      readonly query: RunStorage;
      readonly mutate: RunStorage;
      /** The function that the operations belong to. */
      readonly asker: ContextUser;
    },
  ) {
    super(query);
    this.#mutate = mutate;
    this.#asker = asker;
  }

  async generateUploadUrl(): Promise<unknown> {
    return await this.#mutate("_ctx/storage:generateUploadUrl", {});
  }

  async delete(id: string): Promise<void> {
    try {
      await this.#mutate("_ctx/storage:deleteFile", { id: checkedId("delete", id) });
    } catch (error) {
      throw failedAt(this.#asker, "ctx.storage.delete()", error);
    }
  }
}

/** Contents are sent between an action and main in chunks, as base64 in JSON. */
export class StorageActionsApi extends StorageWriterApi {
  readonly #act: RunStorage;

  constructor(
    { act, ...run }: {
      readonly query: RunStorage;
      readonly mutate: RunStorage;
      readonly act: RunStorage;
      readonly asker: ContextUser;
    },
  ) {
    super(run);
    this.#act = act;
  }

  async store(
    contents: Blob,
    { name, contentType }: { readonly name?: string; readonly contentType?: string } = {},
  ): Promise<unknown> {
    if (!(contents instanceof Blob)) {
      throw new TypeError(
        "store() needs a Blob: new Blob([bytes], { type }), or the result of (await fetch(url)).blob()",
      );
    }
    const upload = await this.#act("_ctx/storage:beginFile", {
      name: name ?? (contents instanceof File ? contents.name : null),
      contentType: contentType ?? (contents.type === "" ? null : contents.type),
    });
    const step = fileApiLimits.actionChunkBytes;
    for (let start = 0; start < contents.size; start += step) {
      const bytes = new Uint8Array(await contents.slice(start, start + step).arrayBuffer());
      await this.#act("_ctx/storage:appendToFile", { upload, bytes: bytes.toBase64() });
    }
    return await this.#act("_ctx/storage:finishFile", { upload });
  }

  async get(id: string): Promise<Blob | null> {
    const metadata = await this.getMetadata(checkedId("get", id)) as
      | { readonly size: number; readonly contentType: string | null }
      | null;
    if (metadata === null) return null;
    if (metadata.size > fileApiLimits.actionReadBytesMax) {
      throw withHelp(
        new RangeError(
          `The file has ${metadata.size} bytes, more than the limit of ${fileApiLimits.actionReadBytesMax} for get(): fetch its URL instead`,
        ),
        "limit",
      );
    }
    const step = fileApiLimits.actionChunkBytes;
    const pieces: Uint8Array<ArrayBuffer>[] = [];
    for (let start = 0; start < metadata.size; start += step) {
      const piece = await this.#act("_ctx/storage:readFile", {
        id,
        start,
        end: Math.min(start + step, metadata.size) - 1,
      });
      // Deleted in the meantime.
      if (piece === null) return null;
      pieces.push(Uint8Array.fromBase64(piece as string));
    }
    return new Blob(pieces, { type: metadata.contentType ?? "" });
  }
}
