/**
 * Objects in an S3 bucket, addressed by their names below a prefix. Requests are plain signed ones with a length and
 * without checksum trailers, which every S3-compatible service accepts. Import this file only where a bucket is used:
 * it loads the AWS client, which costs memory and time.
 */
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { createHash } from "node:crypto";
import type { ByteRange } from "../http_request.ts";
import type { BucketLocation } from "./object_store.ts";
import { bucketLimits } from "../limits.ts";
import { BucketRetryStrategy, type RetryPolicy } from "./bucket_retries.ts";

export type { BucketLocation };

export interface BucketOptions {
  /** Timeout of a request including its retries. Optional. */
  readonly requestMs?: number;
  readonly retryPolicy?: RetryPolicy;
  /** Aborts requests in flight. */
  readonly signal?: AbortSignal;
}

export interface ListedObject {
  readonly name: string;
  readonly size: number;
  /** Milliseconds since the epoch. */
  readonly writtenAt: number;
}

export interface ReadObject {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly size: number;
  /** ETag; changes with the object. */
  readonly version: string | null;
}

/** An upload. `commit` or `abort` ends it. */
export interface ObjectWriter {
  /**
   * Takes the next bytes; resolves when there is room for more. The caller may reuse the chunk then. Call it once at a
   * time.
   */
  write(chunk: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Makes the complete, durable object visible under its name. */
  commit(): Promise<void>;
  /** Leaves nothing behind, or an upload that `abortUnfinishedUploads` removes. Never rejects. */
  abort(): Promise<void>;
}

type Send = S3Client["send"];

export class Bucket implements Disposable {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #prefix: string;
  readonly #options: BucketOptions;
  readonly #retries: BucketRetryStrategy;

  /** Connects with the first request. */
  constructor(place: BucketLocation, options: BucketOptions = {}) {
    const { bucket, prefix, region, endpoint, accessKeyId, secretAccessKey } = place;
    this.#bucket = bucket;
    this.#prefix = prefix;
    this.#options = options;
    const { retryPolicy: patience = { attempts: bucketLimits.attempts } } = options;
    this.#retries = new BucketRetryStrategy(patience);
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
      maxAttempts: patience.attempts,
    });
  }

  /** Reads an object or a part inside it; returns `null` when there is no such object. */
  async read(
    name: string,
    { part = null, version = null }: {
      readonly part?: ByteRange | null;
      /** The read fails if the object has another version. */
      readonly version?: string | null;
    } = {},
  ): Promise<ReadObject | null> {
    const answer = await orNull(this.#send(
      new GetObjectCommand({
        ...this.#at(name),
        ...(part !== null && { Range: `bytes=${part.start}-${part.end}` }),
        ...(version !== null && { IfMatch: version }),
      }),
    ));
    if (answer === null) return null;
    const body = (answer.Body?.transformToWebStream() ?? new Blob([]).stream()) as ReadableStream<
      Uint8Array<ArrayBuffer>
    >;
    return { body, size: answer.ContentLength ?? 0, version: answer.ETag ?? null };
  }

  /** Returns the size of an object in bytes, or `null`. */
  async size(name: string): Promise<number | null> {
    return (await orNull(this.#send(new HeadObjectCommand(this.#at(name)))))?.ContentLength ?? null;
  }

  /** Writes a small object with one request. */
  async put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#send(new PutObjectCommand({ ...this.#at(name), Body: bytes, ContentLength: bytes.length }));
  }

  /**
   * Writes a small object unless the name is taken. Returns whether it did, or `null` when the service has no
   * conditional writes; nothing is written then.
   */
  async create(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<boolean | null> {
    try {
      await this.#send(
        new PutObjectCommand({
          ...this.#at(name),
          Body: bytes,
          ContentLength: bytes.length,
          IfNoneMatch: "*",
        }),
      );
      return true;
    } catch (error) {
      if (!(error instanceof S3ServiceException)) throw error;
      const status = error.$metadata.httpStatusCode;
      // 409: another client is writing it right now.
      if (status === 412 || status === 409) return false;
      if (status === 501 || error.name === "NotImplemented") return null;
      throw error;
    }
  }

  /** Starts an upload. Parts have this many bytes, and one part is in memory; small objects take one request. */
  writer(name: string, { partBytes }: { readonly partBytes: number }): ObjectWriter {
    return new MultipartWriter(this.#send, { at: this.#at(name), partBytes });
  }

  /** Removes an object if it exists. */
  async remove(name: string): Promise<void> {
    await this.#send(new DeleteObjectCommand(this.#at(name)));
  }

  /** Lists the objects with this prefix, ordered by name. */
  async *list(begin: string): AsyncGenerator<ListedObject, void> {
    let token: string | undefined;
    do {
      const page = await this.#send(
        new ListObjectsV2Command({
          Bucket: this.#bucket,
          Prefix: this.#prefix + begin,
          ...(token !== undefined && { ContinuationToken: token }),
        }),
      );
      for (const { Key, LastModified, Size } of page.Contents ?? []) {
        if (Key === undefined) continue;
        const name = Key.slice(this.#prefix.length);
        yield { name, size: Size ?? 0, writtenAt: LastModified?.getTime() ?? 0 };
      }
      token = page.NextContinuationToken;
    } while (token !== undefined);
  }

  /** Aborts unfinished uploads of the chosen objects with this prefix, a bounded number for each call. */
  async abortUnfinishedUploads(
    begin: string,
    chosen: (name: string, begunAt: number | null) => boolean = () => true,
  ): Promise<void> {
    let marker: { KeyMarker: string; UploadIdMarker?: string } | undefined;
    let ended = 0;
    for (let pages = 0; pages < bucketLimits.unfinishedPagesMax; pages++) {
      const page = await this.#send(
        new ListMultipartUploadsCommand({ Bucket: this.#bucket, Prefix: this.#prefix + begin, ...marker }),
      );
      for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
        const begunAt = Initiated?.getTime() ?? null;
        if (Key === undefined || !chosen(Key.slice(this.#prefix.length), begunAt)) continue;
        if (ended++ === bucketLimits.unfinishedEndedMax) return;
        // Another server may have aborted it.
        await orNull(this.#send(new AbortMultipartUploadCommand({ Bucket: this.#bucket, Key, UploadId })));
      }
      const { IsTruncated, NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = page;
      if (IsTruncated !== true || KeyMarker === undefined) return;
      marker = { KeyMarker, ...(UploadIdMarker !== undefined && { UploadIdMarker }) };
    }
  }

  /** Starts an upload and aborts it, so that nothing is left. Throws if the bucket cannot be written. */
  async checkWritable(name: string): Promise<void> {
    const { UploadId } = await this.#send(new CreateMultipartUploadCommand(this.#at(name)));
    await this.#send(new AbortMultipartUploadCommand({ ...this.#at(name), UploadId }));
  }

  [Symbol.dispose](): void {
    this.#client.destroy();
  }

  #at(name: string): Target {
    return { Bucket: this.#bucket, Key: this.#prefix + name };
  }

  /** Sends a request within the timeout. */
  readonly #send: Send = (async (command: Parameters<Send>[0]) => {
    const { requestMs, signal } = this.#options;
    const late = new AbortController();
    const timer = requestMs === undefined ? undefined : setTimeout(() => late.abort(), requestMs);
    const signals = signal === undefined ? [late.signal] : [late.signal, signal];
    try {
      const abortSignal = AbortSignal.any(signals);
      return await this.#retries.runWithSignal(
        abortSignal,
        () => this.#client.send(command, { abortSignal }),
      );
    } catch (error) {
      signal?.throwIfAborted();
      if (!late.signal.aborted) throw error;
      throw new Error(`the bucket did not answer within ${(requestMs ?? 0) / 1_000} s`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }) as Send;
}

/**
 * Returns whether the service itself refused (a wrong key, no such bucket), as opposed to a network or service failure.
 */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof S3ServiceException)) return false;
  const status = error.$metadata.httpStatusCode ?? 500;
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}

/** Describes a failed request. */
export function bucketReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof AggregateError) return error.errors.map(bucketReason).join("; ");
  return error.name === "Error" ? error.message : `${error.name}: ${error.message}`;
}

async function orNull<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof S3ServiceException && error.$metadata.httpStatusCode === 404;
}

/** Most services use a part's MD5 sum as its ETag, and the sum of these for the object. */
const MD5_TAG = /^"?([0-9a-f]{32})"?$/;
const PARTS_TAG = /^"?([0-9a-f]{32}-\d+)"?$/;

interface Target {
  readonly Bucket: string;
  readonly Key: string;
}

/** Small objects take one request; larger ones a multipart upload that becomes visible with its last request. */
class MultipartWriter implements ObjectWriter {
  readonly #send: Send;
  readonly #at: Target;
  readonly #partBytes: number;
  #chunks: Uint8Array<ArrayBuffer>[] = [];
  #bytes = 0;
  #sentBytes = 0;
  /** Set with the first full part. */
  #upload: string | null = null;
  readonly #parts: { PartNumber: number; ETag: string | undefined }[] = [];

  constructor(send: Send, { at, partBytes }: { readonly at: Target; readonly partBytes: number }) {
    this.#send = send;
    this.#at = at;
    this.#partBytes = partBytes;
  }

  async write(chunk: Uint8Array<ArrayBuffer>): Promise<void> {
    this.#chunks.push(chunk.slice());
    this.#bytes += chunk.length;
    if (this.#bytes >= this.#partBytes) await this.#sendPart();
  }

  async commit(): Promise<void> {
    if (this.#upload === null) {
      const Body = this.#take();
      await this.#send(new PutObjectCommand({ ...this.#at, Body, ContentLength: Body.length }));
      return;
    }
    if (this.#bytes > 0) await this.#sendPart();
    try {
      await this.#send(
        new CompleteMultipartUploadCommand({
          ...this.#at,
          UploadId: this.#upload,
          MultipartUpload: { Parts: this.#parts },
        }),
      );
    } catch (error) {
      // After a lost answer, the retry fails because the upload no longer exists.
      if (!isMissing(error) || !await this.#isThere()) throw error;
    }
  }

  /** Returns whether the object consists of the sent parts, if the service reports that. */
  async #isThere(): Promise<boolean> {
    const found = await orNull(this.#send(new HeadObjectCommand(this.#at)));
    if (found?.ContentLength !== this.#sentBytes) return false;
    const tag = PARTS_TAG.exec(found.ETag ?? "")?.[1];
    const sums = this.#parts.map(({ ETag = "" }) => MD5_TAG.exec(ETag)?.[1]);
    if (tag === undefined || sums.includes(undefined)) return true;
    const sum = createHash("md5").update(sums.join(""), "hex").digest("hex");
    return tag === `${sum}-${sums.length}`;
  }

  async abort(): Promise<void> {
    this.#chunks = [];
    if (this.#upload === null) return;
    await this.#send(new AbortMultipartUploadCommand({ ...this.#at, UploadId: this.#upload })).catch(
      () => {},
    );
  }

  async #sendPart(): Promise<void> {
    this.#upload ??= (await this.#send(new CreateMultipartUploadCommand(this.#at))).UploadId ?? null;
    if (this.#upload === null) throw new Error("The bucket did not start an upload");
    const Body = this.#take();
    const PartNumber = this.#parts.length + 1;
    const { ETag } = await this.#send(
      new UploadPartCommand({
        ...this.#at,
        UploadId: this.#upload,
        PartNumber,
        Body,
        ContentLength: Body.length,
      }),
    );
    this.#parts.push({ PartNumber, ETag });
    this.#sentBytes += Body.length;
  }

  #take(): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(this.#bytes);
    let at = 0;
    for (const chunk of this.#chunks) {
      bytes.set(chunk, at);
      at += chunk.length;
    }
    this.#chunks = [];
    this.#bytes = 0;
    return bytes;
  }
}
