/** Readers of a stream, and the delay from the write of each chunk to its arrival at each reader. */
import { found } from "../../tests/support/waiting.ts";

export interface StreamReadersOptions {
  readonly port: number;
  readonly readers: number;
  /** Chunks that the action writes. Each begins with the time of its write. */
  readonly chunks: number;
  readonly intervalMs: number;
}

export interface StreamReadersResult {
  readonly deliveryMs: number[];
  /** Number of readers that received all chunks. */
  readonly complete: number;
}

const CREATE_MS_MAX = 10_000;
const decoder = new TextDecoder();

export async function streamReaders(
  { port, readers, chunks, intervalMs }: StreamReadersOptions,
): Promise<StreamReadersResult> {
  const call = async (kind: "action" | "query", path: string, args: object) => {
    const response = await fetch(`http://127.0.0.1:${port}/api/${kind}`, {
      method: "POST",
      body: JSON.stringify({ path, args }),
    });
    return (await response.json()).value;
  };
  const written = call("action", "answers:write", { chunks, intervalMs, readers });
  const id = await found<string>(() => call("query", "answers:newest", {}), {
    what: "the action creates a stream",
    timeoutMs: CREATE_MS_MAX,
    everyMs: 20,
  });
  const deliveryMs: number[] = [];
  let complete = 0;
  const read = async () => {
    using conn = await Deno.connect({ hostname: "127.0.0.1", port });
    await conn.write(
      new TextEncoder().encode(`GET /api/streams/${id} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`),
    );
    const bytes = new Uint8Array(16_384);
    let received = 0;
    let text = "";
    while (received < chunks) {
      const length = await conn.read(bytes);
      if (length === null) return;
      const now = Date.now();
      // A time may be divided between two reads.
      text += decoder.decode(bytes.subarray(0, length));
      for (const [, writtenAt] of text.matchAll(/<(\d+)>/g)) {
        deliveryMs.push(now - Number(writtenAt));
        received++;
      }
      text = text.slice(text.lastIndexOf(">") + 1);
    }
    complete++;
  };
  await Promise.all(Array.from({ length: readers }, read));
  await written;
  return { deliveryMs, complete };
}
