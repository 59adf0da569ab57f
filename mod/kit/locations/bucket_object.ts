/** Reads an object of a bucket to its end. After a broken connection it requests the rest. */
import type { Bucket } from "./bucket.ts";

export interface OpenedObject extends AsyncDisposable {
  /** 0 if the service does not report it. */
  readonly size: number;
  /**
   * The content, to be read once. Throws an `ObjectLostError`, or the last error after `attemptsMax` attempts without
   * progress.
   */
  readonly chunks: AsyncIterable<Uint8Array<ArrayBuffer>>;
}

/** The object was removed or replaced. */
export class ObjectLostError extends Error {
  readonly why: "gone" | "changed";

  constructor(why: "gone" | "changed") {
    super(why === "gone" ? "The object is gone" : "The object has changed meanwhile");
    this.why = why;
  }
}

export interface OpenObjectOptions {
  readonly name: string;
  /** A read fails if no bytes arrive for this long. */
  readonly stallMs: number;
  /** Attempts without progress before the read fails. */
  readonly attemptsMax: number;
}

/** Returns `null` if there is no such object. */
export async function openObject(bucket: Bucket, options: OpenObjectOptions): Promise<OpenedObject | null> {
  const first = await bucket.read(options.name);
  if (first === null) return null;
  return {
    size: first.size,
    chunks: resumedChunks(bucket, { ...options, first }),
    // A body that was read to its end cannot be cancelled.
    [Symbol.asyncDispose]: () => first.body.cancel().catch(() => {}),
  };
}

async function* resumedChunks(
  bucket: Bucket,
  { name, stallMs, attemptsMax, first }: OpenObjectOptions & {
    readonly first: NonNullable<Awaited<ReturnType<Bucket["read"]>>>;
  },
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const { size, version } = first;
  if (size === 0) return yield* chunksOf(first.body, stallMs);
  let received = 0;
  let body: ReadableStream<Uint8Array<ArrayBuffer>> | null = first.body;
  for (let failures = 0; received < size; failures++) {
    const before = received;
    let broken: unknown = new Error("the connection ended");
    try {
      body ??= (await bucket.read(name, { part: { start: received, end: size - 1 }, version }))?.body ?? null;
      if (body === null) throw new ObjectLostError("gone");
      for await (const chunk of chunksOf(body, stallMs)) {
        received += chunk.length;
        if (received > size) throw new ObjectLostError("changed");
        yield chunk;
      }
    } catch (error) {
      if (error instanceof ObjectLostError) throw error;
      broken = error;
    }
    body = null;
    if (received > before) failures = 0;
    if (received < size && failures >= attemptsMax) throw broken;
  }
}

/** Yields the chunks of a body. Throws if no bytes arrive for `stallMs`. */
async function* chunksOf(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  stallMs: number,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  const cancel = () => reader.cancel().catch(() => {});
  let stalled = false;
  const stall = () => {
    stalled = true;
    void cancel();
  };
  try {
    for (;;) {
      const timer = setTimeout(stall, stallMs);
      const { done, value } = await reader.read().finally(() => clearTimeout(timer));
      if (stalled) throw new Error(`the connection delivered no data for ${stallMs} ms`);
      if (done) return;
      yield value;
    }
  } finally {
    await cancel();
  }
}
