/**
 * TLS between the servers of a cluster. A server creates a self-signed certificate at its start and publishes it with its
 * address. Followers accept exactly that certificate, under a name that no public authority can certify.
 */
import { Buffer } from "node:buffer";
import { createServer, type Server, type Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { TLSSocket } from "node:tls";
import { closeQuietly } from "../kit/local_socket.ts";
import { linkLimits } from "./limits.ts";
import type { LinkConn } from "./link.ts";

/** PEM texts. */
export interface LinkCertificate {
  readonly certificate: string;
  readonly privateKey: string;
}

const SERVER_NAME = "leader.syncline.internal";
/** Connections accepted and not yet taken. Further ones are closed. */
const BACKLOG_MAX = 128;

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

/** Connects to `host:port` and verifies the certificate. Rejects after a timeout or an abort. */
export async function connectTls(
  { address, certificate }: { readonly address: string; readonly certificate: string },
  signal: AbortSignal,
): Promise<Deno.TlsConn> {
  const end = address.lastIndexOf(":");
  const hostname = address.slice(0, end).replace(/^\[(.*)\]$/, "$1");
  let conn: Deno.TcpConn | Deno.TlsConn | null = null;
  let over = false;
  const open = async () => {
    const plain = conn = await Deno.connect({ hostname, port: Number(address.slice(end + 1)) });
    if (over) throw new Deno.errors.TimedOut("Too late");
    plain.setNoDelay();
    const secure = conn = await Deno.startTls(plain, { hostname: SERVER_NAME, caCerts: [certificate] });
    await secure.handshake();
    return secure;
  };
  const opening = open();
  const done = new AbortController();
  const late = wait(linkLimits.handshakeMs, null, { signal: AbortSignal.any([signal, done.signal]) })
    .catch(() => null);
  try {
    const secure = await Promise.race([opening, late]);
    if (secure === null || signal.aborted) throw new Deno.errors.TimedOut(`${address} does not answer`);
    return secure;
  } catch (error) {
    over = true;
    if (conn !== null) closeQuietly(conn);
    opening.then(closeQuietly, () => conn !== null && closeQuietly(conn));
    throw error;
  } finally {
    done.abort();
  }
}

/**
 * Listens for TLS connections. `Deno.listenTls` cannot disable Nagle's algorithm, which delays a small message behind
 * another one by 40 ms.
 */
export class TlsListener implements AsyncIterable<LinkConn> {
  readonly #server: Server;
  readonly #waiting: LinkConn[] = [];
  #wake: () => void = () => {};
  #error: Error | null = null;
  #closed = false;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async listen(
    { hostname, port, certificate, privateKey }:
      & { readonly hostname: string; readonly port: number }
      & LinkCertificate,
  ): Promise<TlsListener> {
    const server = createServer({ allowHalfOpen: true });
    const self = new TlsListener(server);
    server.on("connection", (socket) => self.#take(socket, { certificate, privateKey }));
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once("error", reject);
    server.listen(port, hostname, resolve);
    await promise;
    server.on("error", (error) => self.#end(error));
    return self;
  }

  get port(): number {
    const address = this.#server.address();
    return address === null || typeof address === "string" ? 0 : address.port;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<LinkConn, void> {
    for (;;) {
      const conn = this.#waiting.shift();
      if (conn !== undefined) yield conn;
      else if (this.#error !== null) throw this.#error;
      else if (this.#closed) return;
      else await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#server.close();
    for (const conn of this.#waiting.splice(0)) conn.close();
    this.#wake();
  }

  #end(error: Error): void {
    this.#error = error;
    this.#wake();
  }

  #take(socket: Socket, { certificate, privateKey }: LinkCertificate): void {
    socket.on("error", () => socket.destroy());
    if (this.#closed || this.#waiting.length >= BACKLOG_MAX) return void socket.destroy();
    socket.setNoDelay(true);
    const remoteAddr = {
      transport: "tcp" as const,
      hostname: socket.remoteAddress ?? "",
      port: socket.remotePort ?? 0,
    };
    const secure = new TLSSocket(socket, { isServer: true, cert: certificate, key: privateKey });
    this.#waiting.push(new TlsServerConn(secure, { socket, remoteAddr }));
    this.#wake();
  }
}

/** An accepted connection with the methods of `Deno.Conn`. The handshake takes place with the first read. */
class TlsServerConn implements LinkConn {
  readonly remoteAddr: Deno.NetAddr;
  readonly #secure: TLSSocket;
  readonly #socket: Socket;
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();

  constructor(
    secure: TLSSocket,
    { socket, remoteAddr }: { readonly socket: Socket; readonly remoteAddr: Deno.NetAddr },
  ) {
    this.#secure = secure;
    this.#socket = socket;
    this.remoteAddr = remoteAddr;
    // Errors reject reads and writes.
    secure.on("error", () => {});
    this.#chunks = secure[Symbol.asyncIterator]();
  }

  async read(target: Uint8Array): Promise<number | null> {
    if (this.#rest.length === 0) {
      const next = await this.#chunks.next();
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
    this.#secure.end(resolve);
    return promise;
  }

  close(): void {
    this.#secure.destroy();
    this.#socket.destroy();
  }
}
