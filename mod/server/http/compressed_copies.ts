/** Cache of compressed static files, filled on demand and bounded. */
import { LRUCache } from "lru-cache";
import { TimeSlicer } from "../../kit/clock.ts";
import { staticLimits } from "../limits.ts";

/** Supported codings, the more effective first. */
export const CODINGS = ["br", "gzip"] as const;

export type Coding = typeof CODINGS[number];

const PLAIN_TYPES =
  /^(?:text\/|application\/(?:javascript|json|xml|wasm|manifest\+json|vnd\.ms-fontobject)|image\/(?:bmp|x-icon|vnd\.microsoft\.icon)|font\/(?:ttf|otf|collection)|[^;]*\+(?:json|xml))/;

/** Whether compression makes bodies of this type much smaller. */
export function isCompressible(type: string): boolean {
  return PLAIN_TYPES.test(type);
}

/** Codings that `Accept-Encoding` allows, the preferred one first. */
export function acceptedCodings(header: string | null): readonly Coding[] {
  if (header === null) return [];
  const weights = new Map<string, number>();
  for (const part of header.toLowerCase().split(",")) {
    const [name = "", ...parameters] = part.split(";").map((text) => text.trim());
    const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    weights.set(name, weight === undefined ? 1 : Number(weight) || 0);
  }
  const weightOf = (coding: string) => weights.get(coding) ?? weights.get("*") ?? 0;
  return CODINGS.filter((coding) => weightOf(coding) > 0).sort((a, b) => weightOf(b) - weightOf(a));
}

export interface Original {
  /** Identifies the file and its state: path, size and modification time. */
  readonly key: string;
  /** In bytes. */
  readonly size: number;
  read(): Promise<ReadableStream<Uint8Array<ArrayBuffer>>>;
}

export class CompressedCopies {
  /** By coding and key; `"original"` if compression is not worth it. */
  readonly #cached = new LRUCache<string, Uint8Array<ArrayBuffer> | "original">({
    max: staticLimits.copiesMax,
    maxSize: staticLimits.copiesBytesMax,
    sizeCalculation: (copy) => Math.max(1, copy === "original" ? 0 : copy.length),
  });
  /** Compressions in progress, by coding and key. */
  readonly #compressing = new Map<string, Promise<Uint8Array<ArrayBuffer> | null>>();

  /** Returns the compressed copy, or `null` to send the original (size, little gain, too many compressions). */
  async get(original: Original, coding: Coding): Promise<Uint8Array<ArrayBuffer> | null> {
    const { size } = original;
    if (size < staticLimits.compressedBytesMin || size > staticLimits.compressedBytesMax) return null;
    const name = `${coding} ${original.key}`;
    const cached = this.#cached.get(name);
    if (cached !== undefined) return cached === "original" ? null : cached;
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
    const worthwhile = copy.length < original.size * staticLimits.compressedShareMax ? copy : null;
    this.#cached.set(name, worthwhile ?? "original");
    return worthwhile;
  }
}

/** Yields between chunks, because it runs on the main thread. */
async function compress(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  coding: Coding,
): Promise<Uint8Array<ArrayBuffer>> {
  const slicer = new TimeSlicer();
  const sliced = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    async transform(chunk, controller) {
      await slicer.yieldIfDue();
      controller.enqueue(chunk);
    },
  });
  const compressed = body.pipeThrough(sliced).pipeThrough(compressor(coding));
  return new Uint8Array(await new Response(compressed).arrayBuffer());
}

function compressor(coding: Coding): CompressionStream {
  // The runtime's types list fewer formats than it supports.
  return new CompressionStream(coding === "br" ? "brotli" as "gzip" : "gzip");
}
