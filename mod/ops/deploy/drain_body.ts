/** Reads and discards the rest of a request body within limits, so that the client reads the response. */

export interface DrainBounds {
  readonly bytesMax: number;
  readonly ms: number;
}

/** Never rejects. Beyond the limits the body is canceled. */
export async function drainBody(
  body: ReadableStream<Uint8Array> | null,
  { bytesMax, ms }: DrainBounds,
): Promise<void> {
  if (body === null || body.locked) return;
  const reader = body.getReader();
  const timer = setTimeout(() => void reader.cancel().catch(() => {}), ms);
  try {
    for (let bytes = 0; bytes <= bytesMax;) {
      const { done, value } = await reader.read();
      if (done) return;
      bytes += value.length;
    }
  } catch {
    // The client has disconnected.
  } finally {
    clearTimeout(timer);
    await reader.cancel().catch(() => {});
  }
}
