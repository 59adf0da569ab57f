/** Takes the rest of a body that nobody wants, within bounds, so that its sender comes to read the answer. */

export interface DrainBounds {
  readonly bytesMax: number;
  readonly ms: number;
}

/** Never rejects: what is left behind the bounds is cancelled. */
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
    // Its sender is gone.
  } finally {
    clearTimeout(timer);
    await reader.cancel().catch(() => {});
  }
}
