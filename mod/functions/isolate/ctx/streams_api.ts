/** `ctx.streams` of actions: the main process keeps the streams. */
import { fileApiLimits } from "../../limits.ts";

type RunStream = (name: string, args: Record<string, unknown>) => Promise<unknown>;

const DEFAULT_TYPE = "text/plain; charset=utf-8";

export class StreamsApi {
  readonly #act: RunStream;

  constructor(act: RunStream) {
    this.#act = act;
  }

  async create(
    { contentType = DEFAULT_TYPE, name = null, store = true }: {
      readonly contentType?: string;
      readonly name?: string | null;
      readonly store?: boolean;
    } = {},
  ): Promise<StreamWriterApi> {
    const id = await this.#act("_ctx/streams:create", { contentType, name, store });
    return new StreamWriterApi(this.#act, id as string);
  }
}

export class StreamWriterApi {
  readonly id: string;
  readonly #act: RunStream;

  constructor(act: RunStream, id: string) {
    this.#act = act;
    this.id = id;
  }

  async write(chunk: string | Uint8Array): Promise<void> {
    if (typeof chunk !== "string" && !(chunk instanceof Uint8Array)) {
      throw new TypeError(
        `write() needs a string or a Uint8Array, not ${chunk === null ? "null" : typeof chunk}`,
      );
    }
    // Pieces in order, each accepted before the next one is sent.
    const step = fileApiLimits.actionChunkBytes;
    if (typeof chunk === "string") {
      const text = chunk.toWellFormed();
      for (let at = 0; at < text.length;) {
        // A character takes up to three bytes, and a pair of surrogates must not be separated.
        let end = Math.min(at + Math.floor(step / 3), text.length);
        if (end < text.length && /[\uD800-\uDBFF]/.test(text[end - 1] ?? "")) end--;
        await this.#act("_ctx/streams:write", { stream: this.id, text: text.slice(at, end) });
        at = end;
      }
      return;
    }
    for (let at = 0; at < chunk.length; at += step) {
      const bytes = chunk.subarray(at, at + step).toBase64();
      await this.#act("_ctx/streams:write", { stream: this.id, bytes });
    }
  }

  async end(): Promise<unknown> {
    return await this.#act("_ctx/streams:end", { stream: this.id });
  }

  async fail(): Promise<void> {
    await this.#act("_ctx/streams:fail", { stream: this.id });
  }
}
