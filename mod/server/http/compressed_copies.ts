/** Cache of compressed static files, filled on demand and bounded. */
import { TimeSlicer } from "../../kit/time_slicer.ts";
import { staticLimits } from "../limits.ts";
import type { Coding } from "./content_coding.ts";

/** A file to compress. */
export interface Original {
  /** Identifies the file and its state: path, size and modification time. */
  readonly key: string;
  /** In bytes. */
  readonly size: number;
  read(): Promise<ReadableStream<Uint8Array<ArrayBuffer>>>;
}

export class CompressedCopies {
  /** By coding and key, least recently used first; `null` if compression is not worth it. */
  readonly #cached = new Map<string, Uint8Array<ArrayBuffer> | null>();
  #cachedBytes = 0;
  /** Compressions in progress, by coding and key. */
  readonly #compressing = new Map<string, Promise<Uint8Array<ArrayBuffer> | null>>();

  /**
   * Returns the compressed copy, or `null` to send the original: it is too small or large, does not become much smaller, or
   * too many compressions are in progress.
   */
  async get(original: Original, coding: Coding): Promise<Uint8Array<ArrayBuffer> | null> {
    const { size } = original;
    if (size < staticLimits.compressedBytesMin || size > staticLimits.compressedBytesMax) return null;
    const name = `${coding} ${original.key}`;
    const kept = this.#cached.get(name);
    if (kept !== undefined) {
      this.#cached.delete(name);
      this.#cached.set(name, kept);
      return kept;
    }
    let making = this.#compressing.get(name);
    if (making === undefined) {
      if (this.#compressing.size >= staticLimits.compressionsMax) return null;
      making = this.#compress(original, { coding, name }).finally(() => this.#compressing.delete(name));
      this.#compressing.set(name, making);
    }
    return await making;
  }

  async #compress(
    original: Original,
    { coding, name }: { readonly coding: Coding; readonly name: string },
  ): Promise<Uint8Array<ArrayBuffer> | null> {
    const copy = await compress(await original.read(), coding);
    const kept = copy.length < original.size * staticLimits.compressedShareMax ? copy : null;
    this.#cache(name, kept);
    return kept;
  }

  #cache(name: string, copy: Uint8Array<ArrayBuffer> | null): void {
    this.#cached.set(name, copy);
    this.#cachedBytes += copy?.length ?? 0;
    for (const [oldest, { length } = { length: 0 }] of entriesOf(this.#cached)) {
      if (this.#cachedBytes <= staticLimits.copiesBytesMax && this.#cached.size <= staticLimits.copiesMax) {
        break;
      }
      this.#cached.delete(oldest);
      this.#cachedBytes -= length;
    }
  }
}

function* entriesOf(
  kept: ReadonlyMap<string, Uint8Array | null>,
): Generator<[string, Uint8Array | undefined]> {
  for (const [name, copy] of kept) yield [name, copy ?? undefined];
}

/** Yields between chunks, because it runs on the main thread. */
async function compress(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  coding: Coding,
): Promise<Uint8Array<ArrayBuffer>> {
  const turns = new TimeSlicer();
  const inTurns = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    async transform(chunk, controller) {
      await turns.yieldIfDue();
      controller.enqueue(chunk);
    },
  });
  const compressed = body.pipeThrough(inTurns).pipeThrough(compressor(coding));
  return new Uint8Array(await new Response(compressed).arrayBuffer());
}

function compressor(coding: Coding): CompressionStream {
  // The runtime's types list fewer formats than it supports.
  return new CompressionStream(coding === "br" ? "brotli" as "gzip" : "gzip");
}
