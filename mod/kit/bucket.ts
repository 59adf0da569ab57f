/**
 * A place in an S3 bucket: objects by their names below a prefix. Requests are plain signed ones with a length, without
 * checksum trailers, so that every S3-compatible service takes them. The client's library is loaded with this file, which
 * is to be loaded only when there is a bucket: it takes memory and time.
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
import type { ByteRange } from "./byte_range.ts";
import { bucketLimits } from "./limits.ts";
import { BucketRetries, type Patience } from "./places/bucket_retries.ts";

export interface BucketPlace {
  readonly bucket: string;
  /** What all keys begin with; ends in a slash unless it is empty. */
  readonly prefix: string;
  readonly region: string;
  /** `null`: that of AWS for the region. Other services are addressed with the bucket in the path. */
  readonly endpoint: string | null;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface BucketOptions {
  /** A request that has no answer for this long has failed, all its tries together; never, unless told. */
  readonly requestMs?: number;
  /** How often a request is tried. */
  readonly patience?: Patience;
  /** Ends requests under way. */
  readonly signal?: AbortSignal;
}

/** An object as a listing tells of it. */
export interface ListedObject {
  /** Without the prefix. */
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** Milliseconds since the epoch. */
  readonly writtenAt: number;
}

/** An object that is being read. */
export interface ReadObject {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** Bytes of the body. */
  readonly size: number;
  /** Another one when the object has changed. */
  readonly version: string | null;
}

/** An object on its way. One of `commit` and `abort` ends it. */
export interface ObjectWriter {
  /** Takes the next bytes; resolves when there is room for more. The chunk is the caller's again then. One call at a time. */
  write(chunk: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Makes the object appear under its name, whole and durable. */
  commit(): Promise<void>;
  /** Leaves nothing behind, or an upload that `endUnfinished` ends. Never rejects. */
  abort(): Promise<void>;
}

type Send = S3Client["send"];

export class Bucket implements Disposable {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #prefix: string;
  readonly #options: BucketOptions;
  readonly #retries: BucketRetries;

  /** Connects with the first request. */
  constructor(place: BucketPlace, options: BucketOptions = {}) {
    const { bucket, prefix, region, endpoint, accessKeyId, secretAccessKey } = place;
    this.#bucket = bucket;
    this.#prefix = prefix;
    this.#options = options;
    const { patience = { attempts: bucketLimits.attempts } } = options;
    this.#retries = new BucketRetries(patience);
    this.#client = new S3Client({
      region,
      ...(endpoint !== null && { endpoint, forcePathStyle: true }),
      credentials: { accessKeyId, secretAccessKey },
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
      // Said here, or the library looks for them in files and variables that the server cannot read.
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

  /** The bytes of an object, or of a part that lies inside it; `null` when there is no such object. */
  async read(
    name: string,
    { part = null, version = null }: {
      readonly part?: ByteRange | null;
      /** Fails when it is not this version any more. */
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

  /** Bytes of an object; `null` when there is none. */
  async size(name: string): Promise<number | null> {
    return (await orNull(this.#send(new HeadObjectCommand(this.#at(name)))))?.ContentLength ?? null;
  }

  /** Writes a small object with one request. */
  async put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#send(new PutObjectCommand({ ...this.#at(name), Body: bytes, ContentLength: bytes.length }));
  }

  /**
   * Writes a small object unless there is one of that name. Whether it did; `null` when the service knows no conditional
   * writes, and nothing was written.
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
      // 409: another is writing it at this moment.
      if (status === 412 || status === 409) return false;
      if (status === 501 || error.name === "NotImplemented") return null;
      throw error;
    }
  }

  /** Begins an object. It is sent in parts of this many bytes, of which one is held in memory; small ones at once. */
  writer(name: string, { partBytes }: { readonly partBytes: number }): ObjectWriter {
    return new PartWriter(this.#send, { at: this.#at(name), partBytes });
  }

  /** Removes an object; there may be none. */
  async remove(name: string): Promise<void> {
    await this.#send(new DeleteObjectCommand(this.#at(name)));
  }

  /** Objects whose names begin with this, in the order of their names. */
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

  /**
   * Ends uploads that were begun and neither finished nor ended, of objects whose names begin with this and are chosen. Where
   * there are very many of them some are left to the next time.
   */
  async endUnfinished(
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
        // Another server may have ended it.
        await orNull(this.#send(new AbortMultipartUploadCommand({ Bucket: this.#bucket, Key, UploadId })));
      }
      const { IsTruncated, NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = page;
      if (IsTruncated !== true || KeyMarker === undefined) return;
      marker = { KeyMarker, ...(UploadIdMarker !== undefined && { UploadIdMarker }) };
    }
  }

  /** Whether objects can be written: begins one and ends it again, so that nothing is left. Throws when they cannot. */
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

  /** Sends a request, for no longer than the options allow. */
  readonly #send: Send = (async (command: Parameters<Send>[0]) => {
    const { requestMs, signal } = this.#options;
    const late = new AbortController();
    const timer = requestMs === undefined ? undefined : setTimeout(() => late.abort(), requestMs);
    const signals = signal === undefined ? [late.signal] : [late.signal, signal];
    try {
      const abortSignal = AbortSignal.any(signals);
      return await this.#retries.during(abortSignal, () => this.#client.send(command, { abortSignal }));
    } catch (error) {
      signal?.throwIfAborted();
      if (!late.signal.aborted) throw error;
      throw new Error(`the bucket gave no answer for ${(requestMs ?? 0) / 1_000} s`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }) as Send;
}

/** Whether the service itself said no (a wrong key, no such bucket): not a network that is down, nor trouble of its own. */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof S3ServiceException)) return false;
  const status = error.$metadata.httpStatusCode ?? 500;
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}

/** What a failed request came to, for people. */
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

/** Most services name a part by its sum, and an object by the sum of those of its parts. */
const MD5_TAG = /^"?([0-9a-f]{32})"?$/;
const PARTS_TAG = /^"?([0-9a-f]{32}-\d+)"?$/;

interface Target {
  readonly Bucket: string;
  readonly Key: string;
}

/** Small objects go as one request; others in parts, of which nothing can be read before the last request. */
class PartWriter implements ObjectWriter {
  readonly #send: Send;
  readonly #at: Target;
  readonly #partBytes: number;
  #chunks: Uint8Array<ArrayBuffer>[] = [];
  #bytes = 0;
  /** Of all parts. */
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
      // Who sends it again because the answer was lost hears that there is no such upload.
      if (!isMissing(error) || !await this.#isThere()) throw error;
    }
  }

  /** Whether the object is what the parts make, as far as the service tells. */
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
    if (this.#upload === null) throw new Error("The bucket began no upload");
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
