/** An HTTP/1.1 client on plain TCP for load: one keep-alive connection, one request at a time. */

const READ_BYTES = 16_384;
const BODY_BYTES_MAX = 64 * 1_048_576;
/** A response without a length. */
const NO_CONTENT = 204;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export interface RawRequest {
  readonly method: "GET" | "PATCH" | "POST";
  readonly path: string;
  /** JSON. Not sent with GET. */
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface RawResponse {
  readonly status: number;
  readonly body: string;
}

/** A keep-alive connection to 127.0.0.1. */
export class RawHttp implements Disposable {
  readonly #conn: Deno.TcpConn;
  readonly #port: number;
  #incoming = new Uint8Array(READ_BYTES);

  private constructor(conn: Deno.TcpConn, port: number) {
    this.#conn = conn;
    this.#port = port;
  }

  static async connect(port: number): Promise<RawHttp> {
    const conn = await Deno.connect({ hostname: "127.0.0.1", port });
    conn.setNoDelay(true);
    return new RawHttp(conn, port);
  }

  /** Posts a JSON body and returns the response. Throws if the connection is lost or the response has no length. */
  post(
    path: string,
    body: string,
    { headers = {} }: { readonly headers?: Readonly<Record<string, string>> } = {},
  ): Promise<RawResponse> {
    return this.send({ method: "POST", path, body, headers });
  }

  /** Sends a request and returns the response. Throws like {@linkcode post}. */
  async send({ method, path, body = "", headers = {} }: RawRequest): Promise<RawResponse> {
    const payload = encoder.encode(body);
    const about = method === "GET"
      ? ""
      : `Content-Type: application/json\r\nContent-Length: ${payload.length}\r\n`;
    const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("");
    const head = encoder.encode(
      `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${this.#port}\r\n${about}${more}\r\n`,
    );
    const request = new Uint8Array(head.length + payload.length);
    request.set(head);
    request.set(payload, head.length);
    for (let sent = 0; sent < request.length;) sent += await this.#conn.write(request.subarray(sent));
    return await this.#answer();
  }

  async #answer(): Promise<RawResponse> {
    let length = 0;
    for (;;) {
      const read = await this.#conn.read(this.#incoming.subarray(length));
      if (read === null) throw new Error("The server closed the connection instead of answering");
      length += read;
      const text = decoder.decode(this.#incoming.subarray(0, length));
      const headEnd = text.indexOf("\r\n\r\n");
      if (headEnd < 0) {
        if (length === this.#incoming.length) throw new RangeError("The answer's head is too long");
        continue;
      }
      const head = text.slice(0, headEnd);
      const status = Number(head.slice(9, 12));
      const bodyBytes = status === NO_CONTENT
        ? 0
        : Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? NaN);
      if (!(bodyBytes <= BODY_BYTES_MAX)) throw new Error(`Cannot read this answer: ${head}`);
      // Heads are ASCII, so characters and bytes are the same here.
      const wanted = headEnd + 4 + bodyBytes;
      if (wanted > this.#incoming.length) {
        const larger = new Uint8Array(wanted);
        larger.set(this.#incoming.subarray(0, length));
        this.#incoming = larger;
      }
      while (length < wanted) {
        const more = await this.#conn.read(this.#incoming.subarray(length, wanted));
        if (more === null) throw new Error("The server closed the connection in the middle of an answer");
        length += more;
      }
      return { status, body: decoder.decode(this.#incoming.subarray(headEnd + 4, wanted)) };
    }
  }

  [Symbol.dispose](): void {
    this.#conn.close();
  }
}
