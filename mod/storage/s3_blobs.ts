/**
 * Blobs in an S3 bucket: `blobs/<name>`, derivatives as `derived/<name>/<derivative>`, all below a prefix. Requests are
 * plain signed ones with a length, without checksum trailers, so that every S3-compatible service takes them. The client's
 * library is loaded with this file, which is loaded only when files lie in a bucket.
 */
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import type { ByteRange } from "../kit/byte_range.ts";
import { removeIfThere, statIfThere } from "../kit/durable_files.ts";
import { storageLimits } from "../limits.ts";
import type { BlobStore, BlobWriter, ListedBlob } from "./blob_store.ts";

export interface S3BlobsOptions {
  readonly bucket: string;
  /** What all keys begin with; ends in a slash unless it is empty. */
  readonly prefix: string;
  readonly region: string;
  /** `null`: that of AWS for the region. Other services are addressed with the bucket in the path. */
  readonly endpoint: string | null;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** A store in a bucket, with what its parts share. */
interface Bucket {
  readonly client: S3Client;
  readonly bucket: string;
  readonly prefix: string;
}

export class S3Blobs implements BlobStore {
  readonly #bucket: Bucket;

  private constructor(bucket: Bucket) {
    this.#bucket = bucket;
  }

  /** Connects to a bucket, and ends the uploads a server before this one left unfinished. Throws when it cannot be used. */
  static async open(options: S3BlobsOptions): Promise<S3Blobs> {
    const { bucket, prefix, region, endpoint, accessKeyId, secretAccessKey } = options;
    const client = new S3Client({
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
      retryMode: "standard",
      maxAttempts: 3,
    });
    try {
      await abortUnfinished({ client, bucket, prefix });
    } catch (error) {
      client.destroy();
      throw error;
    }
    return new S3Blobs({ client, bucket, prefix });
  }

  create(name: string): Promise<BlobWriter> {
    return Promise.resolve(new S3Writer(this.#bucket, this.#key(name)));
  }

  async adopt(name: string, path: string): Promise<void> {
    if (await statIfThere(path) === null) return;
    using file = await Deno.open(path);
    const writer = await this.create(name);
    try {
      for await (const chunk of file.readable) await writer.write(chunk);
      await writer.commit();
    } catch (error) {
      await writer.abort();
      throw error;
    }
    await removeIfThere(path);
  }

  async read(
    name: string,
    part: ByteRange | null,
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>> | null> {
    return await this.#get(this.#key(name), part);
  }

  async remove(name: string): Promise<void> {
    const { client, bucket } = this.#bucket;
    for await (const { key } of this.#keys(`derived/${name}/`)) {
      await client.send(new DeleteObjectCommand({ Bucket: bucket, Key: key }));
    }
    await client.send(new DeleteObjectCommand({ Bucket: bucket, Key: this.#key(name) }));
  }

  async *list(): AsyncIterable<ListedBlob> {
    for await (const { key, writtenAt } of this.#keys("blobs/")) {
      yield { name: key.slice(`${this.#bucket.prefix}blobs/`.length), writtenAt };
    }
    let previous = "";
    for await (const { key, writtenAt } of this.#keys("derived/")) {
      const [name = ""] = key.slice(`${this.#bucket.prefix}derived/`.length).split("/");
      if (name !== previous) yield { name, writtenAt };
      previous = name;
    }
  }

  async readDerivative(name: string, derivative: string): Promise<Uint8Array<ArrayBuffer> | null> {
    const stream = await this.#get(this.#derivedKey(name, derivative), null);
    return stream === null ? null : await new Response(stream).bytes();
  }

  async writeDerivative(
    name: string,
    derivative: string,
    bytes: Uint8Array<ArrayBuffer>,
  ): Promise<void> {
    const { client, bucket } = this.#bucket;
    const key = this.#derivedKey(name, derivative);
    await client.send(
      new PutObjectCommand({ Bucket: bucket, Key: key, Body: bytes, ContentLength: bytes.length }),
    );
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#bucket.client.destroy();
    return Promise.resolve();
  }

  #key(name: string): string {
    return `${this.#bucket.prefix}blobs/${name}`;
  }

  #derivedKey(name: string, derivative: string): string {
    return `${this.#bucket.prefix}derived/${name}/${derivative}`;
  }

  async #get(key: string, part: ByteRange | null): Promise<ReadableStream<Uint8Array<ArrayBuffer>> | null> {
    const { client, bucket } = this.#bucket;
    try {
      const { Body } = await client.send(
        new GetObjectCommand({
          Bucket: bucket,
          Key: key,
          ...(part !== null && { Range: `bytes=${part.start}-${part.end}` }),
        }),
      );
      return (Body?.transformToWebStream() ?? new Blob([]).stream()) as ReadableStream<
        Uint8Array<ArrayBuffer>
      >;
    } catch (error) {
      if (error instanceof S3ServiceException && error.$metadata.httpStatusCode === 404) return null;
      throw error;
    }
  }

  /** Keys that begin with this below the prefix, in order. */
  async *#keys(below: string): AsyncGenerator<{ key: string; writtenAt: number }, void> {
    const { client, bucket, prefix } = this.#bucket;
    let token: string | undefined;
    do {
      const page = await client.send(
        new ListObjectsV2Command({
          Bucket: bucket,
          Prefix: prefix + below,
          ...(token !== undefined && { ContinuationToken: token }),
        }),
      );
      for (const { Key, LastModified } of page.Contents ?? []) {
        if (Key !== undefined) yield { key: Key, writtenAt: LastModified?.getTime() ?? 0 };
      }
      token = page.NextContinuationToken;
    } while (token !== undefined);
  }
}

/** Small blobs go as one request; others in parts, of which nothing can be read before the last request. */
class S3Writer implements BlobWriter {
  readonly #bucket: Bucket;
  readonly #key: string;
  #chunks: Uint8Array<ArrayBuffer>[] = [];
  #bytes = 0;
  /** Set with the first full part. */
  #upload: string | null = null;
  readonly #parts: { PartNumber: number; ETag: string | undefined }[] = [];

  constructor(bucket: Bucket, key: string) {
    this.#bucket = bucket;
    this.#key = key;
  }

  async write(chunk: Uint8Array<ArrayBuffer>): Promise<void> {
    this.#chunks.push(chunk.slice());
    this.#bytes += chunk.length;
    if (this.#bytes >= storageLimits.s3PartBytes) await this.#sendPart();
  }

  async commit(): Promise<void> {
    const { client, bucket } = this.#bucket;
    const target = { Bucket: bucket, Key: this.#key };
    if (this.#upload === null) {
      const Body = this.#take();
      await client.send(new PutObjectCommand({ ...target, Body, ContentLength: Body.length }));
      return;
    }
    if (this.#bytes > 0) await this.#sendPart();
    await client.send(
      new CompleteMultipartUploadCommand({
        ...target,
        UploadId: this.#upload,
        MultipartUpload: { Parts: this.#parts },
      }),
    );
  }

  async abort(): Promise<void> {
    this.#chunks = [];
    if (this.#upload === null) return;
    const { client, bucket } = this.#bucket;
    // What cannot be ended now is ended when the bucket is opened again.
    await client.send(
      new AbortMultipartUploadCommand({ Bucket: bucket, Key: this.#key, UploadId: this.#upload }),
    ).catch(() => {});
  }

  async #sendPart(): Promise<void> {
    const { client, bucket } = this.#bucket;
    const target = { Bucket: bucket, Key: this.#key };
    this.#upload ??= (await client.send(new CreateMultipartUploadCommand(target))).UploadId ?? null;
    if (this.#upload === null) throw new Error("The bucket began no upload");
    const Body = this.#take();
    const PartNumber = this.#parts.length + 1;
    const { ETag } = await client.send(
      new UploadPartCommand({
        ...target,
        UploadId: this.#upload,
        PartNumber,
        Body,
        ContentLength: Body.length,
      }),
    );
    this.#parts.push({ PartNumber, ETag });
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

async function abortUnfinished({ client, bucket, prefix }: Bucket): Promise<void> {
  let marker: { KeyMarker: string; UploadIdMarker?: string } | undefined;
  do {
    const page = await client.send(
      new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: `${prefix}blobs/`, ...marker }),
    );
    for (const { Key, UploadId } of page.Uploads ?? []) {
      await client.send(new AbortMultipartUploadCommand({ Bucket: bucket, Key, UploadId }));
    }
    marker = page.IsTruncated === true && page.NextKeyMarker !== undefined
      ? {
        KeyMarker: page.NextKeyMarker,
        ...(page.NextUploadIdMarker !== undefined && { UploadIdMarker: page.NextUploadIdMarker }),
      }
      : undefined;
  } while (marker !== undefined);
}
