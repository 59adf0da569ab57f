/** Many small GET requests over keep-alive connections on plain TCP, so that the client's own cost is low. */

const decoder = new TextDecoder("latin1");

export interface RawGetsOptions {
  readonly port: number;
  readonly path: string;
  /** Requests of all connections. */
  readonly count: number;
  readonly connections: number;
}

/** Returns the requests per second. Throws if a status is not 200. */
export async function rawGets({ port, path, count, connections }: RawGetsOptions): Promise<number> {
  const perConnection = Math.ceil(count / connections);
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: connections }, () => getRepeatedly(port, { path, count: perConnection })),
  );
  return perConnection * connections / ((performance.now() - startedAt) / 1000);
}

async function getRepeatedly(port: number, { path, count }: { path: string; count: number }): Promise<void> {
  using conn = await Deno.connect({ hostname: "127.0.0.1", port });
  conn.setNoDelay(true);
  const request = new TextEncoder().encode(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
  const buffer = new Uint8Array(16_384);
  for (let sent = 0; sent < count; sent++) {
    await conn.write(request);
    let received = 0;
    let total = Infinity;
    while (received < total) {
      // The body may be larger than the buffer. Only its length is needed.
      const read = await conn.read(total === Infinity ? buffer.subarray(received) : buffer);
      if (read === null) throw new Error("The server closed the connection");
      received += read;
      if (total !== Infinity) continue;
      const head = decoder.decode(buffer.subarray(0, received));
      const end = head.indexOf("\r\n\r\n");
      if (end < 0) continue;
      const bodyLength = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? NaN);
      if (!head.startsWith("HTTP/1.1 200") || Number.isNaN(bodyLength)) throw new Error(head.slice(0, end));
      total = end + 4 + bodyLength;
    }
  }
}
