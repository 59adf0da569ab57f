/** Many small GET requests over kept-alive connections on plain TCP, whose own cost is low and the same for every server. */

const decoder = new TextDecoder("latin1");

export interface RawGetsOptions {
  readonly port: number;
  readonly path: string;
  /** Requests in all. */
  readonly count: number;
  readonly connections: number;
}

export const RawGets = {
  /** Gives the requests answered each second. Throws for an answer that is not 200. */
  async run({ port, path, count, connections }: RawGetsOptions): Promise<number> {
    const each = Math.ceil(count / connections);
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: connections }, () => getAll(port, { path, count: each })));
    return each * connections / ((performance.now() - startedAt) / 1000);
  },
};

async function getAll(port: number, { path, count }: { path: string; count: number }): Promise<void> {
  using conn = await Deno.connect({ hostname: "127.0.0.1", port });
  conn.setNoDelay(true);
  const request = new TextEncoder().encode(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
  const buffer = new Uint8Array(16_384);
  for (let sent = 0; sent < count; sent++) {
    await conn.write(request);
    let length = 0;
    let wanted = Infinity;
    while (length < wanted) {
      // Of a body only the length counts: it may be larger than the buffer.
      const read = await conn.read(wanted === Infinity ? buffer.subarray(length) : buffer);
      if (read === null) throw new Error("The server closed the connection");
      length += read;
      if (wanted !== Infinity) continue;
      const head = decoder.decode(buffer.subarray(0, length));
      const end = head.indexOf("\r\n\r\n");
      if (end < 0) continue;
      const body = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? NaN);
      if (!head.startsWith("HTTP/1.1 200") || Number.isNaN(body)) throw new Error(head.slice(0, end));
      wanted = end + 4 + body;
    }
  }
}
