/**
 * Objects in an S3 bucket, addressed by their names below a prefix. Requests are plain signed ones with a length and
 * without checksum trailers, which every S3-compatible service accepts. Import this file only where a bucket is used:
 * it loads the AWS client, which costs memory and time.
 */
import {
  AbortMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { setTimeout as wait } from "node:timers/promises";
import type { ByteRange } from "../http_request.ts";
import { removeIfThere, statIfThere } from "../durable_files.ts";
import { objectLimits } from "../limits.ts";
import {
  type BucketLocation,
  LocationError,
  locationText,
  type ObjectBody,
  type ObjectInfo,
  ObjectLostError,
  type ObjectStore,
  type ObjectWriter,
  type PutOptions,
  readObject,
  type StoreOptions,
} from "./object_store.ts";
import { type RetryPolicy, S3RetryStrategy } from "./s3_retries.ts";

export interface S3StoreOptions
  extends Pick<StoreOptions, "signal" | "requestMs" | "attempts" | "partBytes"> {
  /** Waits between attempts. */
  readonly pause?: RetryPolicy["pause"];
  /** A read fails if no bytes arrive for this long. */
  readonly stallMs?: number;
  readonly resumesMax?: number;
  readonly settleMs?: number;
}

type Send = S3Client["send"];

interface ReadAnswer {
  readonly body: ObjectBody;
  /** Bytes; 0 if the service does not report it. */
  readonly size: number;
  /** ETag; changes with the object. */
  readonly version: string | undefined;
}

interface ObjectKey {
  readonly Bucket: string;
  readonly Key: string;
}

export class S3Store implements ObjectStore {
  readonly kind = "bucket";
  readonly location: string;
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #prefix: string;
  readonly #options: S3StoreOptions;
  readonly #retries: S3RetryStrategy;

  /** Connects with the first request. */
  constructor(place: BucketLocation, options: S3StoreOptions = {}) {
    const { bucket, prefix, region, endpoint, accessKeyId, secretAccessKey } = place;
    this.location = locationText({ kind: "bucket", bucket: place });
    this.#bucket = bucket;
    this.#prefix = prefix;
    this.#options = options;
    const { attempts = objectLimits.attempts, pause } = options;
    this.#retries = new S3RetryStrategy({ attempts, ...(pause && { pause }) });
    this.#client = new S3Client({
      region,
      ...(endpoint !== null && { endpoint, forcePathStyle: true }),
      credentials: { accessKeyId, secretAccessKey },
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
      // Set explicitly: otherwise the client reads files and variables that the server has no permission for.
      useFipsEndpoint: false,
      useDualstackEndpoint: false,
      useArnRegion: false,
      disableMultiregionAccessPoints: true,
      disableS3ExpressSessionAuth: true,
      disableClockSkewCorrection: false,
      authSchemePreference: ["aws.auth#sigv4"],
      userAgentAppId: "syncline",
      defaultUserAgentProvider: () => Promise.resolve([["syncline", "1"]]),
      defaultsMode: "standard",
      retryStrategy: this.#retries,
      maxAttempts: attempts,
    });
  }

  async *list(prefix: string): AsyncGenerator<ObjectInfo, void> {
    let token: string | undefined;
    do {
      const page = await this.#attempt("list", () =>
        this.#send(
          new ListObjectsV2Command({
            Bucket: this.#bucket,
            Prefix: this.#prefix + prefix,
            ...(token !== undefined && { ContinuationToken: token }),
          }),
        ));
      for (const { Key, LastModified, Size } of page.Contents ?? []) {
        if (Key === undefined) continue;
        const name = Key.slice(this.#prefix.length);
        yield { name, size: Size ?? 0, writtenAt: LastModified?.getTime() ?? 0 };
      }
      token = page.NextContinuationToken;
    } while (token !== undefined);
  }

  async head(name: string): Promise<ObjectInfo | null> {
    const found = await this.#attempt(
      "read",
      () => orNull(this.#send(new HeadObjectCommand(this.#key(name)))),
    );
    if (found === null) return null;
    return { name, size: found.ContentLength ?? 0, writtenAt: found.LastModified?.getTime() ?? 0 };
  }

  async get(name: string, range: ByteRange | null = null): Promise<ObjectBody | null> {
    const first = await this.#attempt("read", () => this.#read(name, { range }));
    return first === null ? null : ReadableStream.from(this.#chunks(name, { range, first }));
  }

  create(name: string): Promise<ObjectWriter> {
    return Promise.resolve(this.#writer(name, 0));
  }

  async put(
    name: string,
    bytes: Uint8Array<ArrayBuffer>,
    { ifAbsent = false }: PutOptions = {},
  ): Promise<boolean> {
    return await this.#attempt("write to", async () => {
      const send = (condition: { readonly IfNoneMatch?: string }) =>
        this.#send(
          new PutObjectCommand({
            ...this.#key(name),
            Body: bytes,
            ContentLength: bytes.length,
            ...condition,
          }),
        );
      if (!ifAbsent) {
        await send({});
        return true;
      }
      try {
        await send({ IfNoneMatch: "*" });
        return true;
      } catch (error) {
        if (!(error instanceof S3ServiceException)) throw error;
        const status = error.$metadata.httpStatusCode;
        // 409: another client is writing it right now.
        if (status === 412 || status === 409) return false;
        if (status !== 501 && error.name !== "NotImplemented") throw error;
      }
      // Without conditional writes, the last of several concurrent writers wins, and each checks after a pause which one
      // that was. A writer that is delayed by more than the pause is not noticed.
      if (await this.head(name) !== null) return false;
      await send({});
      const { settleMs = objectLimits.settleMs, signal } = this.#options;
      await wait(settleMs, undefined, signal === undefined ? {} : { signal });
      const found = await readObject(this, name, bytes.length).catch((error) => {
        if (error instanceof LocationError && error.fault === "target") return null;
        throw error;
      });
      return found !== null && found.length === bytes.length && found.every((byte, at) => byte === bytes[at]);
    });
  }

  async putFile(name: string, path: string, { move = false } = {}): Promise<void> {
    // A move that was interrupted after the upload is repeated.
    if (move && await statIfThere(path) === null && await this.head(name) !== null) return;
    using file = await Deno.open(path);
    const { size } = await file.stat();
    const writer = this.#writer(name, size);
    try {
      for await (const chunk of file.readable) await writer.write(chunk);
      await writer.commit();
    } catch (error) {
      await writer.abort();
      throw error;
    }
    const stored = (await this.head(name))?.size;
    if (stored !== size) {
      throw new LocationError(
        "away",
        `"${this.location}" has stored ${stored ?? "none"} of ${size} bytes of "${name}"`,
      );
    }
    if (move) await removeIfThere(path);
  }

  async delete(...names: readonly string[]): Promise<void> {
    await this.#attempt("delete from", async () => {
      // Not every service accepts one request for many objects.
      for (const name of names) await this.#send(new DeleteObjectCommand(this.#key(name)));
    });
  }

  async deleteFolder(prefix: string): Promise<void> {
    for await (const { name } of this.list(`${prefix}/`)) await this.delete(name);
  }

  async check(): Promise<void> {
    for await (const _ of this.list("")) break;
    await this.#attempt("write to", async () => {
      const key = this.#key(`syncline-check-${crypto.randomUUID()}`);
      const { UploadId } = await this.#send(new CreateMultipartUploadCommand(key));
      await this.#send(new AbortMultipartUploadCommand({ ...key, UploadId }));
    });
  }

  async removeUnfinished(
    prefix: string,
    { before = Infinity, chosen = () => true }: {
      readonly before?: number;
      readonly chosen?: (name: string) => boolean;
    } = {},
  ): Promise<void> {
    await this.#attempt("delete from", async () => {
      let marker: { KeyMarker: string; UploadIdMarker?: string } | undefined;
      let ended = 0;
      for (let pages = 0; pages < objectLimits.unfinishedPagesMax; pages++) {
        const page = await this.#send(
          new ListMultipartUploadsCommand({
            Bucket: this.#bucket,
            Prefix: this.#prefix + prefix,
            ...marker,
          }),
        );
        for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
          const isOld = before === Infinity || Initiated !== undefined && Initiated.getTime() < before;
          if (Key === undefined || !isOld || !chosen(Key.slice(this.#prefix.length))) continue;
          if (ended++ === objectLimits.unfinishedEndedMax) return;
          // Another server may have aborted it.
          await orNull(
            this.#send(new AbortMultipartUploadCommand({ Bucket: this.#bucket, Key, UploadId })),
          );
        }
        const { IsTruncated, NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = page;
        if (IsTruncated !== true || KeyMarker === undefined) return;
        marker = { KeyMarker, ...(UploadIdMarker !== undefined && { UploadIdMarker }) };
      }
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#client.destroy();
    return Promise.resolve();
  }

  #key(name: string): ObjectKey {
    return { Bucket: this.#bucket, Key: this.#prefix + name };
  }

  /** `size` is 0 if it is unknown. */
  #writer(name: string, size: number): UploadWriter {
    const { partBytes = objectLimits.partBytes } = this.#options;
    // The upload sends its requests through `#send`.
    const client: S3Client = Object.create(this.#client, { send: { value: this.#send } });
    return new UploadWriter({
      client,
      key: this.#key(name),
      partBytes: Math.max(partBytes, Math.ceil(size / objectLimits.partsMax)),
      storedBytes: async () => (await this.head(name))?.size ?? null,
      attempt: (run) => this.#attempt("write to", run),
    });
  }

  async #read(
    name: string,
    { range, version }: { readonly range: ByteRange | null; readonly version?: string | undefined },
  ): Promise<ReadAnswer | null> {
    const answer = await orNull(this.#send(
      new GetObjectCommand({
        ...this.#key(name),
        ...(range !== null && { Range: `bytes=${range.start}-${range.end}` }),
        ...(version !== undefined && { IfMatch: version }),
      }),
    ));
    if (answer === null) return null;
    const body = (answer.Body?.transformToWebStream() ?? new Blob([]).stream()) as ObjectBody;
    return { body, size: answer.ContentLength ?? 0, version: answer.ETag };
  }

  /** Yields the contents of an object. After a broken connection it requests the rest. */
  async *#chunks(
    name: string,
    { range, first }: {
      readonly range: ByteRange | null;
      readonly first: ReadAnswer;
    },
  ): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const { stallMs = objectLimits.stallMs, resumesMax = objectLimits.resumesMax } = this.#options;
    const { size, version } = first;
    if (size === 0) return yield* chunksOf(first.body, stallMs);
    const start = range?.start ?? 0;
    let received = 0;
    let body: ObjectBody | null = first.body;
    try {
      for (let failures = 0; received < size; failures++) {
        const before = received;
        let failure: unknown = new Error("the connection ended");
        try {
          body ??= (await this.#read(name, {
            range: { start: start + received, end: start + size - 1 },
            version,
          }))?.body ?? null;
          if (body === null) throw new ObjectLostError(name, "gone");
          for await (const chunk of chunksOf(body, stallMs)) {
            received += chunk.length;
            if (received > size) throw new ObjectLostError(name, "changed");
            yield chunk;
          }
        } catch (error) {
          if (error instanceof ObjectLostError) throw error;
          if (hasStatus(error, 412)) throw new ObjectLostError(name, "changed");
          failure = error;
        }
        body = null;
        if (received > before) failures = 0;
        if (received < size && failures >= resumesMax) throw failure;
      }
    } catch (error) {
      throw this.#explain("read", error);
    }
  }

  async #attempt<Result>(operation: string, run: () => Promise<Result>): Promise<Result> {
    try {
      return await run();
    } catch (error) {
      throw this.#explain(operation, error);
    }
  }

  #explain(operation: string, cause: unknown): unknown {
    if (cause instanceof LocationError || this.#options.signal?.aborted) return cause;
    return new LocationError(
      isRefusal(cause) ? "refused" : "away",
      `Cannot ${operation} "${this.location}": ${reasonOf(cause)}`,
      { cause },
    );
  }

  /** Sends a request within the timeout. */
  readonly #send: Send = (async (command: Parameters<Send>[0]) => {
    const { requestMs = objectLimits.requestMs, signal } = this.#options;
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), requestMs);
    const abortSignal = signal === undefined ? timeout.signal : AbortSignal.any([timeout.signal, signal]);
    try {
      return await this.#retries.runWithSignal(
        abortSignal,
        () => this.#client.send(command, { abortSignal }),
      );
    } catch (error) {
      signal?.throwIfAborted();
      if (!timeout.signal.aborted) throw error;
      throw new Error(`the bucket did not answer within ${requestMs / 1_000} s`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }) as Send;
}

interface UploadWriterOptions {
  readonly client: S3Client;
  readonly key: ObjectKey;
  readonly partBytes: number;
  /** Returns the size of the object in the bucket. */
  readonly storedBytes: () => Promise<number | null>;
  /** Explains errors. */
  readonly attempt: <Result>(run: () => Promise<Result>) => Promise<Result>;
}

/** Small objects take one request; larger ones a multipart upload that becomes visible with its last request. */
class UploadWriter implements ObjectWriter {
  readonly #options: UploadWriterOptions;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #done: Promise<unknown>;
  #bytes = 0;

  constructor(options: UploadWriterOptions) {
    const { client, key, partBytes } = options;
    this.#options = options;
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    this.#input = writable.getWriter();
    this.#input.closed.catch(() => {});
    const upload = new Upload({
      client,
      params: { ...key, Body: readable },
      partSize: partBytes,
      queueSize: 1,
    });
    this.#done = upload.done();
    // Ends a write that waits for a failed upload.
    this.#done.catch((error) => readable.cancel(error).catch(() => {}));
  }

  async write(chunk: Uint8Array<ArrayBuffer>): Promise<void> {
    this.#bytes += chunk.length;
    await this.#options.attempt(() => this.#input.write(chunk.slice()));
  }

  async commit(): Promise<void> {
    const { storedBytes, attempt } = this.#options;
    await attempt(async () => {
      // A failed upload is reported below.
      await this.#input.close().catch(() => {});
      try {
        await this.#done;
      } catch (error) {
        // After a lost answer, the retry of the last request fails because the upload no longer exists.
        if (!hasStatus(error, 404) || await storedBytes() !== this.#bytes) throw error;
      }
    });
  }

  async abort(): Promise<void> {
    await this.#input.abort(new Error("The upload was aborted")).catch(() => {});
    await this.#done.catch(() => {});
  }
}

/** Yields the chunks of a body. Throws if no bytes arrive for `stallMs`. */
async function* chunksOf(body: ObjectBody, stallMs: number): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  const cancel = () => reader.cancel().catch(() => {});
  let isStalled = false;
  const stall = () => {
    isStalled = true;
    void cancel();
  };
  try {
    for (;;) {
      const timer = setTimeout(stall, stallMs);
      const { done, value } = await reader.read().finally(() => clearTimeout(timer));
      if (isStalled) throw new Error(`the connection delivered no data for ${stallMs} ms`);
      if (done) return;
      yield value;
    }
  } finally {
    await cancel();
  }
}

/** Whether the service itself refused (a wrong key, no such bucket), as opposed to a network or service failure. */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof S3ServiceException)) return false;
  const status = error.$metadata.httpStatusCode ?? 500;
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join("; ");
  return error.name === "Error" ? error.message : `${error.name}: ${error.message}`;
}

async function orNull<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    if (hasStatus(error, 404)) return null;
    throw error;
  }
}

function hasStatus(error: unknown, status: number): boolean {
  return error instanceof S3ServiceException && error.$metadata.httpStatusCode === status;
}
