/** Reads the tar layer of an archive entry by entry. Format errors are thrown as `ArchiveError`. */
import { createTarDecoder, type ParsedTarEntry } from "modern-tar";
import { opsLimits } from "../../limits.ts";
import { ArchiveError, unpackFrames } from "./frames.ts";

/** Overhead of the format per file: headers and padding. */
const ENTRY_BYTES = 8 * 512;

/** An unread entry. */
export interface TarFile {
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** Contents. Must be read to the end before the next entry is requested. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Reads a compressed archive. Disposing of it cancels the source. */
export class TarReader implements AsyncDisposable {
  readonly #entries: ReadableStreamDefaultReader<ParsedTarEntry>;
  readonly #stop = new AbortController();
  readonly #piped: Promise<void>;
  /** Error of the source, which is not the archive's fault. */
  #sourceError: { readonly error: unknown } | null = null;
  /** Maximum size of the tar layer, by the sizes of the entries so far. */
  #expectedBytes = opsLimits.archiveSlackBytes;

  constructor(source: ReadableStream<Uint8Array>) {
    const decoder = createTarDecoder({ strict: true });
    this.#entries = decoder.readable.getReader();
    this.#piped = ReadableStream.from(this.#unpacked(source))
      .pipeTo(decoder.writable, { signal: this.#stop.signal })
      // Errors surface through the entries.
      .catch(() => {});
  }

  /** Returns the next entry, or `null` at the end. Throws an `ArchiveError`, or errors of the source. */
  async next(): Promise<TarFile | null> {
    const { done, value } = await this.#attribute(() => this.#entries.read());
    if (done) return null;
    const { name, size, type } = value.header;
    if (type !== "file") {
      throw new ArchiveError(
        `The archive contains ${JSON.stringify(name)}, which is not a regular file (${type})`,
      );
    }
    if (!Number.isSafeInteger(size) || size < 0) {
      throw new ArchiveError(`The archive is damaged: ${JSON.stringify(name)} has no size`);
    }
    this.#expectedBytes += size + ENTRY_BYTES;
    return { name, size, body: this.#bytesOf(value.body) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#entries.cancel().catch(() => {});
    await this.#piped;
  }

  async *#bytesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
    const reader = body.getReader();
    for (;;) {
      const { done, value } = await this.#attribute(() => reader.read());
      if (done) return;
      yield value;
    }
  }

  async *#unpacked(source: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const chunk of unpackFrames(this.#watched(source))) {
      bytes += chunk.length;
      if (bytes > this.#expectedBytes) {
        throw new ArchiveError("The archive is damaged: it contains too much data outside of files");
      }
      yield chunk;
    }
  }

  /** Passes the source's bytes through and records its errors. */
  async *#watched(source: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      yield* source;
    } catch (error) {
      this.#sourceError = { error };
      throw error;
    }
  }

  /** Distinguishes errors of the archive from errors of the source. */
  async #attribute<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (cause) {
      if (this.#sourceError !== null) throw this.#sourceError.error;
      if (cause instanceof ArchiveError) throw cause;
      throw new ArchiveError(`The archive is damaged: ${cause instanceof Error ? cause.message : cause}`, {
        cause,
      });
    }
  }
}

/** Reads a small entry in full. Throws an `ArchiveError` above `bytesMax`. */
export async function wholeEntry(
  { name, size, body }: TarFile,
  { bytesMax }: { readonly bytesMax: number },
): Promise<Uint8Array> {
  if (size > bytesMax) throw new ArchiveError(`The archive is damaged: "${name}" is too large`);
  const bytes = new Uint8Array(size);
  let filled = 0;
  for await (const chunk of body) {
    bytes.set(chunk, filled);
    filled += chunk.length;
  }
  return bytes;
}
