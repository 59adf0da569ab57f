/** Reads streams over HTTP, and continues at the same byte after a lost connection. */
import type { SynclineClient } from "../client.ts";

/** A stream cannot be read: `not_found` after its expiry, `stream_failed` if its action ended before it, `unavailable` offline. */
export class StreamError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = "StreamError";
    this.code = code;
  }
}

export interface ReadStreamOptions {
  /** First byte. Default: 0. */
  readonly offset?: number;
  /** Ends the read. */
  readonly signal?: AbortSignal;
  /** Requests in a row without a byte before the read fails. Default: 10, which takes half a minute. */
  readonly triesMax?: number;
}

const TRIES_MAX = 10;
const PAUSE_MS = 100;
const PAUSE_MS_MAX = 5_000;

/**
 * Yields the bytes of a stream as they arrive, until its end. `id` is that of the writer in the action. Throws
 * {@linkcode StreamError}, and the reason of the signal when it is aborted.
 */
export async function* readStream(
  client: Pick<SynclineClient, "fileUrl">,
  id: string,
  { offset = 0, signal, triesMax = TRIES_MAX }: ReadStreamOptions = {},
): AsyncGenerator<Uint8Array, void> {
  for (let tries = 0;; tries++) {
    try {
      // Beside the files.
      const url = `${client.fileUrl(`../streams/${encodeURIComponent(id)}`)}?offset=${offset}`;
      const response = await fetch(url, { cache: "no-store", ...signal && { signal } });
      if (!response.ok) throw await refusalOf(response);
      const state = response.headers.get("Syncline-Stream");
      const reader = response.body?.getReader();
      try {
        for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
          tries = 0;
          offset += part.value.length;
          yield part.value;
        }
      } finally {
        // The consumer may have stopped.
        void reader?.cancel().catch(() => {});
      }
      if (state === "failed") throw new StreamError("stream_failed", "The stream ended with an error");
      if (state !== "open") return;
      // It was open when the response began, and may have ended since.
      if (tries === 0) continue;
    } catch (error) {
      signal?.throwIfAborted();
      const isFinal = error instanceof StreamError && error.code !== "unavailable";
      if (isFinal || tries + 1 >= triesMax) throw error instanceof StreamError ? error : offline(error);
    }
    await pause(Math.min(PAUSE_MS_MAX, PAUSE_MS * 2 ** tries) * (0.5 + Math.random() / 2), signal);
  }
}

/**
 * Yields the text of a stream in parts, until its end. Throws like {@linkcode readStream}.
 *
 * @example
 * ```ts
 * for await (const part of readText(client, answer.stream)) output.append(part);
 * ```
 */
export async function* readText(
  client: Pick<SynclineClient, "fileUrl">,
  id: string,
  options: Omit<ReadStreamOptions, "offset"> = {},
): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  for await (const bytes of readStream(client, id, options)) {
    const text = decoder.decode(bytes, { stream: true });
    if (text !== "") yield text;
  }
  const rest = decoder.decode();
  if (rest !== "") yield rest;
}

async function refusalOf(response: Response): Promise<StreamError> {
  const { status } = response;
  const { errorMessage, errorData } = await response.json().catch(() => ({}));
  const isTemporary = status >= 500 || status === 429 || errorData === undefined;
  return new StreamError(
    isTemporary ? "unavailable" : errorData.code,
    errorMessage ?? `The server answered with status ${status}`,
  );
}

function offline(error: unknown): StreamError {
  return new StreamError("unavailable", error instanceof Error ? error.message : String(error));
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    }
    signal?.addEventListener("abort", done);
  });
  signal?.throwIfAborted();
}
