/** An HTTP client that reports each end of its connections and repeats no request. */

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export interface RawAnswer {
  readonly status: number;
  readonly body: string;
}

export class RawHttp implements Disposable {
  readonly #port: number;
  /** Whether a connection is kept for the next request, as far as the server keeps it. */
  readonly #keepAlive: boolean;
  #connection: Deno.Conn | null = null;

  constructor({ port, keepAlive }: { readonly port: number; readonly keepAlive: boolean }) {
    this.#port = port;
    this.#keepAlive = keepAlive;
  }

  /** Throws if the connection is refused or ends before the answer. */
  async post(path: string, body: unknown): Promise<RawAnswer> {
    const connection = this.#connection ?? await Deno.connect({ hostname: "127.0.0.1", port: this.#port });
    this.#connection = null;
    try {
      const text = JSON.stringify(body);
      await this.#send(
        connection,
        `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${this.#port}\r\ncontent-length: ${
          encoder.encode(text).length
        }\r\n` +
          `connection: ${this.#keepAlive ? "keep-alive" : "close"}\r\n\r\n${text}`,
      );
      const { answer, closes } = await this.#answer(connection);
      if (closes || !this.#keepAlive) connection.close();
      else this.#connection = connection;
      return answer;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#connection?.close();
    this.#connection = null;
  }

  async #send(connection: Deno.Conn, text: string): Promise<void> {
    const bytes = encoder.encode(text);
    for (let sent = 0; sent < bytes.length;) sent += await connection.write(bytes.subarray(sent));
  }

  async #answer(connection: Deno.Conn): Promise<{ readonly answer: RawAnswer; readonly closes: boolean }> {
    let text = "";
    const more = async () => {
      const chunk = new Uint8Array(16_384);
      const length = await connection.read(chunk);
      if (length === null) throw new Error(`The connection ended after ${text.length} characters`);
      text += decoder.decode(chunk.subarray(0, length));
    };
    while (!text.includes("\r\n\r\n")) await more();
    const bodyAt = text.indexOf("\r\n\r\n") + 4;
    const head = text.slice(0, bodyAt).toLowerCase();
    const length = Number(/content-length: (\d+)/.exec(head)?.[1] ?? NaN);
    const whole = () =>
      Number.isNaN(length) ? text.endsWith("\r\n0\r\n\r\n") : text.length - bodyAt >= length;
    while (!whole()) await more();
    const status = Number(/^http\/1\.1 (\d+)/.exec(head)?.[1]);
    return { answer: { status, body: text.slice(bodyAt) }, closes: /connection: close/.test(head) };
  }
}
