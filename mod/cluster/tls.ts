/** TLS between servers: each publishes a self-signed certificate with its address, and followers accept exactly that. */
import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import { connect, TLSSocket } from "node:tls";
import { closeQuietly } from "../kit/local_socket.ts";
import { linkLimits } from "./limits.ts";
import { type LinkConn, writeAll } from "./link.ts";

/** PEM texts. */
export interface LinkCertificate {
  readonly certificate: string;
  readonly privateKey: string;
}

const SERVER_NAME = "leader.syncline.internal";

/** The certificate never expires, because clocks may differ; it is replaced at each start. */
export async function createCertificate(): Promise<LinkCertificate> {
  // Loaded on demand, because only clusters need it. The library requires the polyfill.
  await import("reflect-metadata");
  const {
    BasicConstraintsExtension,
    PemConverter,
    SubjectAlternativeNameExtension,
    X509CertificateGenerator,
  } = await import("@peculiar/x509");
  const algorithm = { name: "ECDSA", namedCurve: "P-256" };
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: "01",
    name: "CN=Syncline cluster",
    notBefore: new Date(0),
    notAfter: new Date("9999-12-31"),
    signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
    keys,
    extensions: [
      new BasicConstraintsExtension(false),
      new SubjectAlternativeNameExtension([{ type: "dns", value: SERVER_NAME }]),
    ],
  });
  const key = await crypto.subtle.exportKey("pkcs8", keys.privateKey);
  return {
    certificate: certificate.toString("pem"),
    privateKey: PemConverter.encode(key, "PRIVATE KEY"),
  };
}

/** Connects and verifies the exact certificate; `Deno.startTls` would also accept every authority of this machine. */
export async function connectTls(
  { address, certificate }: { readonly address: string; readonly certificate: string },
  signal: AbortSignal,
): Promise<LinkConn> {
  const end = address.lastIndexOf(":");
  const hostname = address.slice(0, end).replace(/^\[(.*)\]$/, "$1");
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const stop = () => reject(new Deno.errors.TimedOut(`${address} does not answer`));
  const late = setTimeout(stop, linkLimits.handshakeMs);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  const connecting = Deno.connect({ hostname, port: Number(address.slice(end + 1)) });
  let opened: TlsConn | null = null;
  try {
    const conn = await Promise.race([connecting, stopped]);
    conn.setNoDelay();
    const secure = opened = new TlsConn(
      conn,
      (socket) => connect({ socket, servername: SERVER_NAME, ca: [certificate], rejectUnauthorized: true }),
    );
    const peer = await Promise.race([secure.peerCertificate(), stopped]);
    if (derOf(certificate).equals(peer)) return secure;
    throw new Deno.errors.InvalidData(`${address} has another certificate than the published one`);
  } catch (error) {
    opened?.close();
    if (opened === null) connecting.then(closeQuietly, () => {});
    throw error;
  } finally {
    clearTimeout(late);
    signal.removeEventListener("abort", stop);
  }
}

function derOf(certificate: string): Buffer {
  return Buffer.from(certificate.replaceAll(/-----[^-]+-----|\s/g, ""), "base64");
}

/** Listens for TLS connections. `Deno.listenTls` cannot disable Nagle's algorithm, which delays small messages by 40 ms. */
export class TlsListener implements AsyncIterable<LinkConn> {
  readonly #listener: Deno.TcpListener;
  readonly #pair: LinkCertificate;
  #closed = false;

  private constructor(listener: Deno.TcpListener, pair: LinkCertificate) {
    this.#listener = listener;
    this.#pair = pair;
  }

  static listen(
    { hostname, port, ...pair }: { readonly hostname: string; readonly port: number } & LinkCertificate,
  ): TlsListener {
    return new TlsListener(Deno.listen({ hostname, port }), pair);
  }

  get port(): number {
    return this.#listener.addr.port;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<LinkConn, void> {
    const { certificate: cert, privateKey: key } = this.#pair;
    while (!this.#closed) {
      let conn: Deno.TcpConn | null = null;
      try {
        conn = await this.#listener.accept();
        conn.setNoDelay();
      } catch {
        // The client has closed it already, or too many files are open.
        if (conn !== null) closeQuietly(conn);
        else if (!this.#closed) await wait(linkLimits.retryMsMin);
        continue;
      }
      yield new TlsConn(conn, (socket) => new TLSSocket(socket, { isServer: true, cert, key }));
    }
  }

  close(): void {
    this.#closed = true;
    closeQuietly(this.#listener);
  }
}

/** A TLS connection with the methods of `Deno.Conn`. */
class TlsConn implements LinkConn {
  readonly remoteAddr: Deno.NetAddr;
  readonly #conn: Deno.TcpConn;
  /** Reads and writes encrypted data. */
  readonly #socket: Duplex;
  readonly #secure: TLSSocket;
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();
  /** Resolved when received data is read. */
  #wasRead = Promise.withResolvers<void>();

  constructor(conn: Deno.TcpConn, open: (socket: Socket) => TLSSocket) {
    this.#conn = conn;
    this.remoteAddr = conn.remoteAddr;
    this.#socket = this.#encrypted();
    this.#secure = open(this.#socket as Socket);
    // Errors reject reads and writes.
    for (const stream of [this.#socket, this.#secure]) stream.on("error", () => {});
    // The end of one direction leaves the other one open.
    this.#chunks = this.#secure.iterator({ destroyOnReturn: false });
  }

  /** Resolves with the verified certificate of the server. Rejects if the handshake fails. */
  async peerCertificate(): Promise<Uint8Array> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#secure.once("secureConnect", resolve).once("error", reject)
      .once("close", () => reject(new Deno.errors.ConnectionReset("The connection was closed")));
    await promise;
    return this.#secure.getPeerCertificate().raw;
  }

  async read(target: Uint8Array): Promise<number | null> {
    if (this.#rest.length === 0) {
      const next = await this.#chunks.next();
      this.#wasRead.resolve();
      this.#wasRead = Promise.withResolvers();
      if (next.done === true) return null;
      this.#rest = next.value;
    }
    const count = Math.min(target.length, this.#rest.length);
    target.set(this.#rest.subarray(0, count));
    this.#rest = this.#rest.subarray(count);
    return count;
  }

  write(bytes: Uint8Array): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    // A copy, because the caller may reuse the buffer before the runtime has encrypted it.
    this.#secure.write(Buffer.from(bytes), (error) => error ? reject(error) : resolve(bytes.length));
    return promise;
  }

  closeWrite(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    // The runtime does not call back if the connection is closed.
    if (this.#secure.destroyed) resolve();
    else this.#secure.once("close", resolve).end(resolve);
    return promise;
  }

  close(): void {
    this.#secure.destroy();
    this.#socket.destroy();
    closeQuietly(this.#conn);
  }

  /** The runtime would buffer received data without a limit, so that more is received only after it was read. */
  #encrypted(): Duplex {
    const conn = this.#conn;
    const chunk = new Uint8Array(linkLimits.tunnelChunkBytes);
    let isReading = false;
    const receive = async () => {
      while (this.#isFull()) await this.#wasRead.promise;
      return await conn.read(chunk);
    };
    const socket = new Duplex({
      read() {
        if (isReading) return;
        isReading = true;
        receive().then((length) => {
          isReading = false;
          socket.push(length === null ? null : Buffer.from(chunk.subarray(0, length)));
        }, (error) => socket.destroy(error));
      },
      write: (bytes: Uint8Array, _encoding, done) => void writeAll(conn, bytes).then(() => done(), done),
      final: (done) => void conn.closeWrite().then(() => done(), done),
      destroy(error, done) {
        closeQuietly(conn);
        done(error);
      },
    });
    return socket;
  }

  #isFull(): boolean {
    return this.#secure.readableLength >= this.#secure.readableHighWaterMark;
  }
}
