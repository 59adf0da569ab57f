/** The entries of an archive's tar layer, one after another. What is wrong with the bytes is an `ArchiveError`. */
import { createTarDecoder, type ParsedTarEntry } from "modern-tar";
import { opsLimits } from "../../limits.ts";
import { ArchiveError } from "./archive_error.ts";
import { unpackFrames } from "./frames.ts";

/** What the format adds to a file: headers before it, padding behind it. */
const ENTRY_BYTES = 8 * 512;

/** An entry of which nothing has been read. */
export interface TarFile {
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** Its bytes. To be read to their end before the next entry is asked for. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Reads a packed archive. To be disposed of: that ends the reading of the source. */
export class TarReader implements AsyncDisposable {
  readonly #entries: ReadableStreamDefaultReader<ParsedTarEntry>;
  readonly #stop = new AbortController();
  readonly #piped: Promise<void>;
  /** Errors that are not the archive's fault. */
  #sourceFault: { readonly error: unknown } | null = null;
  /** Bytes of the tar layer that there may be, by the sizes of the entries met. */
  #expectedBytes = opsLimits.archiveSlackBytes;

  constructor(source: ReadableStream<Uint8Array>) {
    const decoder = createTarDecoder({ strict: true });
    this.#entries = decoder.readable.getReader();
    this.#piped = ReadableStream.from(this.#unpacked(source))
      .pipeTo(decoder.writable, { signal: this.#stop.signal })
      // Told by the entries.
      .catch(() => {});
  }

  /** The next entry; `null` at the end. Throws an `ArchiveError`, or what reading the source throws. */
  async next(): Promise<TarFile | null> {
    const { done, value } = await this.#blame(() => this.#entries.read());
    if (done) return null;
    const { name, size, type } = value.header;
    if (type !== "file") {
      throw new ArchiveError(`The archive holds ${JSON.stringify(name)}, which is no plain file (${type})`);
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
      const { done, value } = await this.#blame(() => reader.read());
      if (done) return;
      yield value;
    }
  }

  async *#unpacked(source: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const chunk of unpackFrames(this.#watched(source))) {
      bytes += chunk.length;
      if (bytes > this.#expectedBytes) {
        throw new ArchiveError("The archive is damaged: it holds much that belongs to no file");
      }
      yield chunk;
    }
  }

  /** The bytes of the source; notes when reading fails. */
  async *#watched(source: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      yield* source;
    } catch (error) {
      this.#sourceFault = { error };
      throw error;
    }
  }

  /** Tells the archive's faults from those of reading it. */
  async #blame<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (cause) {
      if (this.#sourceFault !== null) throw this.#sourceFault.error;
      if (cause instanceof ArchiveError) throw cause;
      throw new ArchiveError(`The archive is damaged: ${cause instanceof Error ? cause.message : cause}`, {
        cause,
      });
    }
  }
}

/** The whole of a small entry. Throws an `ArchiveError` when it is larger than `bytesMax`. */
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
