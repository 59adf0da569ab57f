/** Reads request bodies: of bounded length as strings or as JSON that matches a schema, and of any length in chunks. */
import { isUtf8 } from "node:buffer";
import type { z } from "zod";
import { ServiceError } from "../errors.ts";
import { httpLimits } from "../limits.ts";

/** Requests whose body is still arriving. The owner of the connections closes those that stall. */
export const bodiesBeingRead: Set<Request> = new Set();

/** Not fatal, which is faster: `isUtf8` checks the bytes in a third of the time. */
const utf8 = new TextDecoder();

/** Reads UTF-8 of at most `bytesMax`, without a byte order mark. Throws `body_too_large` and `bad_request`. */
export async function requestText(request: Request, bytesMax: number): Promise<string> {
  const { headers } = request;
  // `has` would make a list of all headers; `get` looks up one.
  const announced = headers.get("transfer-encoding") === null ? headers.get("content-length") : null;
  if (Number(announced) > bytesMax) throw new ServiceError("body_too_large");
  const readWhole = announced !== null && Number(announced) <= httpLimits.bodyReadWholeBytesMax;
  bodiesBeingRead.add(request);
  try {
    return readWhole ? wholeText(await request.bytes()) : await counted(request, bytesMax);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw new ServiceError("bad_request", "The request body was incomplete", { cause: error });
  } finally {
    bodiesBeingRead.delete(request);
  }
}

async function counted(request: Request, bytesMax: number): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.length;
    // Leaving the loop cancels the body.
    if (bytes > bytesMax) throw new ServiceError("body_too_large");
    text += decoded(decoder, chunk, { stream: true });
  }
  return text + decoded(decoder);
}

function wholeText(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw new ServiceError("bad_request", "The request body is not UTF-8");
  return utf8.decode(bytes);
}

function decoded(decoder: TextDecoder, ...bytes: Parameters<TextDecoder["decode"]>): string {
  try {
    return decoder.decode(...bytes);
  } catch (error) {
    throw new ServiceError("bad_request", "The request body is not UTF-8", { cause: error });
  }
}

export interface JsonBodyOptions {
  readonly bytesMax: number;
  /** Value of an empty body. Without it an empty body is invalid. */
  readonly whenEmpty?: unknown;
}

/** Parses JSON of any type; safe, as credentials are in bodies and headers. Throws `body_too_large`, `bad_request`. */
export async function readJsonBody<Schema extends z.ZodType>(
  request: Request,
  schema: Schema,
  { bytesMax, whenEmpty }: JsonBodyOptions,
): Promise<z.infer<Schema>> {
  const text = await requestText(request, bytesMax);
  const parsed = schema.safeParse(text === "" && whenEmpty !== undefined ? whenEmpty : parseJson(text));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new ServiceError(
    "bad_request",
    `${issue?.path.join(".") || "body"}: ${issue?.message ?? "Invalid input"}`,
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ServiceError("bad_request", "The request body is not valid JSON");
  }
}

export interface MinimumRate {
  readonly ms: number;
  readonly bytes: number;
}

export interface BodyChunksOptions {
  /** Size of each buffer. */
  readonly bufferBytes: number;
  /** Chunks that a caller may still be using when it requests the next one. Default: none. */
  readonly chunksHeld?: number;
  /** Time without bytes after which the body fails. */
  readonly stallMs: number;
  /** Bytes required per time spent waiting for the body. */
  readonly minimumRate?: MinimumRate;
  /** Aborts the body; its reason is thrown. */
  readonly signal?: AbortSignal;
  /** Returns the error for a body that breaks off, stalls, or is too slow. */
  readonly failure: (fault: "incomplete" | "stalled" | "slow", cause?: unknown) => Error;
}

type Body = ReadableStream<Uint8Array<ArrayBuffer>>;

/** Yields a body in large reused buffers, for fewer ticks, copies and garbage. Leaving the loop cancels the body. */
export async function* bodyChunks(
  body: Body | null,
  options: BodyChunksOptions,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
  if (body === null) return;
  const { stallMs, minimumRate, signal, failure } = options;
  const { read, cancel } = readerOf(body, options);
  const stop = () => void cancel();
  signal?.addEventListener("abort", stop);
  // Only time spent waiting for the client counts, not the time the caller takes between two reads.
  let reading = false;
  let moved = true;
  let stalled = false;
  const watch = setInterval(() => {
    if (reading && !moved) {
      stalled = true;
      stop();
    }
    moved = false;
  }, stallMs);
  let windowMs = 0;
  let windowBytes = 0;
  try {
    for (;;) {
      signal?.throwIfAborted();
      reading = moved = true;
      const startedAt = performance.now();
      const chunk = await read().catch((error) => {
        throw failure("incomplete", error);
      });
      reading = false;
      signal?.throwIfAborted();
      if (stalled) throw failure("stalled");
      if (chunk === null) return;
      windowMs += performance.now() - startedAt;
      windowBytes += chunk.length;
      if (minimumRate !== undefined && windowMs >= minimumRate.ms) {
        if (windowBytes < minimumRate.bytes) throw failure("slow");
        windowMs = windowBytes = 0;
      }
      yield chunk;
    }
  } finally {
    clearInterval(watch);
    signal?.removeEventListener("abort", stop);
    await cancel();
  }
}

interface ChunkReader {
  /** Returns `null` at the end and after `cancel`. */
  readonly read: () => Promise<Uint8Array<ArrayBuffer> | null>;
  /** Never rejects. */
  readonly cancel: () => Promise<void>;
}

function readerOf(
  body: Body,
  { bufferBytes, chunksHeld = 0 }: Pick<BodyChunksOptions, "bufferBytes" | "chunksHeld">,
): ChunkReader {
  const filling = fillingReader(body);
  if (filling === null) {
    const reader = body.getReader();
    return {
      read: async () => (await reader.read()).value ?? null,
      cancel: () => reader.cancel().catch(() => {}),
    };
  }
  const free = Array.from({ length: chunksHeld + 1 }, () => new ArrayBuffer(bufferBytes));
  return {
    async read() {
      const { done, value } = await filling.read(
        new Uint8Array(free.shift() ?? new ArrayBuffer(bufferBytes)),
      );
      if (done) return null;
      free.push(value.buffer);
      return value;
    },
    cancel: () => filling.cancel().catch(() => {}),
  };
}

/** Returns a BYOB reader, or `null` for a body that is already in memory, as short ones are. */
function fillingReader(body: Body): ReadableStreamBYOBReader | null {
  try {
    return body.getReader({ mode: "byob" });
  } catch (error) {
    if (error instanceof TypeError && !body.locked) return null;
    throw error;
  }
}
