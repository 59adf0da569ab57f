/** An object of a bucket, read to its end whatever breaks meanwhile: what is missing is asked for again. */
import type { Bucket } from "../bucket.ts";

export interface OpenedObject extends AsyncDisposable {
  /** Bytes; 0 when the service does not say, too. */
  readonly size: number;
  /**
   * All of them, to be read once. Throws an `ObjectLostError`, or what broke the reading when it brings nothing new any
   * more.
   */
  readonly chunks: AsyncIterable<Uint8Array<ArrayBuffer>>;
}

/** The object is not there any more, or is another one. */
export class ObjectLostError extends Error {
  readonly why: "gone" | "changed";

  constructor(why: "gone" | "changed") {
    super(why === "gone" ? "The object is gone" : "The object has changed meanwhile");
    this.why = why;
  }
}

export interface OpenObjectOptions {
  readonly name: string;
  /** A body that brings nothing for this long has broken off. */
  readonly stallMs: number;
  /** How often it is gone on with although that brought nothing new. */
  readonly attemptsMax: number;
}

/** `null`: there is none. */
export async function openObject(bucket: Bucket, options: OpenObjectOptions): Promise<OpenedObject | null> {
  const first = await bucket.read(options.name);
  if (first === null) return null;
  return {
    size: first.size,
    chunks: allOf(bucket, { ...options, first }),
    // One that was read is not there to be cancelled.
    [Symbol.asyncDispose]: () => first.body.cancel().catch(() => {}),
  };
}

async function* allOf(
  bucket: Bucket,
  { name, stallMs, attemptsMax, first }: OpenObjectOptions & {
    readonly first: NonNullable<Awaited<ReturnType<Bucket["read"]>>>;
  },
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const { size, version } = first;
  if (size === 0) return yield* chunksOf(first.body, stallMs);
  let received = 0;
  let body: ReadableStream<Uint8Array<ArrayBuffer>> | null = first.body;
  for (let vain = 0; received < size; vain++) {
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
    if (received > before) vain = 0;
    if (received < size && vain >= attemptsMax) throw broken;
  }
}

/** The chunks of a body until it ends. Throws when it stands still for too long. */
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
      if (stalled) throw new Error(`the connection brought nothing for ${stallMs} ms`);
      if (done) return;
      yield value;
    }
  } finally {
    await cancel();
  }
}
