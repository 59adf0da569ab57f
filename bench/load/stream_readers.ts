/** Readers of one stream, and the time from each chunk to its arrival at each of them. */
import { setTimeout as wait } from "node:timers/promises";

export interface StreamReadersOptions {
  readonly port: number;
  readonly readers: number;
  /** Chunks that the action writes. Each begins with its time in milliseconds since the epoch. */
  readonly chunks: number;
  readonly everyMs: number;
}

export interface StreamReadersResult {
  readonly deliveryMs: number[];
  /** Readers that received all chunks. */
  readonly complete: number;
}

const decoder = new TextDecoder();

export async function streamReaders(options: StreamReadersOptions): Promise<StreamReadersResult> {
  const { port, readers, chunks, everyMs } = options;
  const url = `http://127.0.0.1:${port}`;
  const call = async (path: string, args: object) => {
    const response = await fetch(`${url}/api/action`, {
      method: "POST",
      body: JSON.stringify({ path, args }),
    });
    return (await response.json()).value;
  };
  const written = call("answers:write", { chunks, everyMs, readers });
  const id = await newestStream(url);
  const deliveryMs: number[] = [];
  let complete = 0;
  const read = async () => {
    // A connection of its own for each reader.
    const conn = await Deno.connect({ hostname: "127.0.0.1", port });
    try {
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
        // A time may arrive in two parts.
        text += decoder.decode(bytes.subarray(0, length));
        for (const [, at] of text.matchAll(/<(\d+)>/g)) {
          deliveryMs.push(now - Number(at));
          received++;
        }
        text = text.slice(text.lastIndexOf(">") + 1);
      }
      complete++;
    } finally {
      conn.close();
    }
  };
  await Promise.all(Array.from({ length: readers }, read));
  await written;
  return { deliveryMs, complete };
}

async function newestStream(url: string): Promise<string> {
  for (let tries = 0; tries < 500; tries++) {
    const response = await fetch(`${url}/api/query`, {
      method: "POST",
      body: JSON.stringify({ path: "answers:newest", args: {} }),
    });
    const { value } = await response.json();
    if (value !== null) return value;
    await wait(20);
  }
  throw new Error("The action has created no stream");
}
