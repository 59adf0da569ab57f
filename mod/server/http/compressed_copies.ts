/** Compressed copies of files that are served, made when they are first asked for and kept in memory up to a bound. */
import { TimeSlicer } from "../../kit/time_slicer.ts";
import { staticLimits } from "../limits.ts";
import type { Coding } from "./content_coding.ts";

/** What a copy is made of. */
export interface Original {
  /** Names the original in this state of it: another path, size or time of change gives another key. */
  readonly key: string;
  /** Its length. */
  readonly size: number;
  read(): Promise<ReadableStream<Uint8Array<ArrayBuffer>>>;
}

export class CompressedCopies {
  /** By key and coding, the one used last at the end; `null` where a copy would hardly be smaller. */
  readonly #kept = new Map<string, Uint8Array<ArrayBuffer> | null>();
  #keptBytes = 0;
  /** Being made, by key and coding. */
  readonly #making = new Map<string, Promise<Uint8Array<ArrayBuffer> | null>>();

  /**
   * The compressed copy; `null` where the original is what to send: it is too short or too long, would hardly become
   * smaller, or more copies are being made than may be at once.
   */
  async get(original: Original, coding: Coding): Promise<Uint8Array<ArrayBuffer> | null> {
    const { size } = original;
    if (size < staticLimits.compressedBytesMin || size > staticLimits.compressedBytesMax) return null;
    const name = `${coding} ${original.key}`;
    const kept = this.#kept.get(name);
    if (kept !== undefined) {
      this.#kept.delete(name);
      this.#kept.set(name, kept);
      return kept;
    }
    let making = this.#making.get(name);
    if (making === undefined) {
      if (this.#making.size >= staticLimits.compressionsMax) return null;
      making = this.#make(original, { coding, name }).finally(() => this.#making.delete(name));
      this.#making.set(name, making);
    }
    return await making;
  }

  async #make(
    original: Original,
    { coding, name }: { readonly coding: Coding; readonly name: string },
  ): Promise<Uint8Array<ArrayBuffer> | null> {
    const copy = await compress(await original.read(), coding);
    const kept = copy.length < original.size * staticLimits.compressedShareMax ? copy : null;
    this.#keep(name, kept);
    return kept;
  }

  #keep(name: string, copy: Uint8Array<ArrayBuffer> | null): void {
    this.#kept.set(name, copy);
    this.#keptBytes += copy?.length ?? 0;
    for (const [oldest, { length } = { length: 0 }] of entriesOf(this.#kept)) {
      if (this.#keptBytes <= staticLimits.copiesBytesMax && this.#kept.size <= staticLimits.copiesMax) break;
      this.#kept.delete(oldest);
      this.#keptBytes -= length;
    }
  }
}

function* entriesOf(
  kept: ReadonlyMap<string, Uint8Array | null>,
): Generator<[string, Uint8Array | undefined]> {
  for (const [name, copy] of kept) yield [name, copy ?? undefined];
}

/** In small pieces, because it happens on the main thread. */
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
  // The runtime's types name fewer formats than it has.
  return new CompressionStream(coding === "br" ? "brotli" as "gzip" : "gzip");
}
