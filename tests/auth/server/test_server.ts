/** A whole server in this process, with its own isolates, and sockets that connect to it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { startBackend } from "../../../mod/server/backend.ts";
import type { ServeConfig } from "../../../mod/config/config.ts";
import { forwardLine, type Log, type LogReceiver, plainFields } from "../../../mod/kit/log.ts";
import { Server } from "../../../mod/server/server.ts";
import { testConfig } from "../../server/support/fake_backend.ts";

export interface TestServer extends AsyncDisposable {
  readonly url: string;
  readonly dataDir: string;
  readonly logged: string[];
  readonly setupLink: string | null;
  post(
    path: string,
    body: unknown,
    options?: { readonly bearer?: string; readonly headers?: HeadersInit },
  ): Promise<{
    readonly status: number;
    // deno-lint-ignore no-explicit-any -- tests look into bodies of many shapes
    readonly body: any;
    readonly headers: Headers;
  }>;
  /** Resolves once a line has been logged. */
  logs(line: string): Promise<void>;
  /** A socket that has sent Connect and, with a token, Authenticate. */
  socket(token?: string, features?: readonly string[]): Promise<TestSocket>;
  /** Stops and starts again on the same folder. `between` may return changes of the configuration. */
  restart(between?: () => Promise<Partial<ServeConfig> | void>): Promise<void>;
}

export interface StartOptions {
  readonly config?: Partial<ServeConfig>;
  readonly accounts?: Partial<ServeConfig["accounts"]>;
  /** Files of the app. */
  readonly functions?: Record<string, string>;
  /** Called when an administrator requests a restart. Only with `restartExitCode` in the configuration. */
  readonly onRestart?: () => void;
}

/** Starts a server on a free port with its data in a temporary folder. */
export async function startTestServer(
  { config = {}, accounts = {}, functions = {}, onRestart }: StartOptions = {},
): Promise<
  TestServer
> {
  const folder = await Deno.makeTempDir();
  const dataDir = join(folder, "data");
  const functionsDir = join(folder, "functions");
  await Deno.mkdir(functionsDir);
  for (const [name, text] of Object.entries(functions)) {
    await Deno.writeTextFile(join(functionsDir, name), text);
  }
  const logged: string[] = [];
  const logging = new EventTarget();
  const base = testConfig({ dataDir, functionsDir, ...config });
  const receivers = new Set<LogReceiver>();
  const write: Log = (level, message, fields = {}) => {
    logged.push(`${level} ${message}`);
    logging.dispatchEvent(new Event("line"));
    forwardLine(receivers, { at: Date.now(), level, message, fields: plainFields(fields) });
  };
  const log = Object.assign(write, { receivers });
  const start = (changes: Partial<ServeConfig> = {}) =>
    Server.start({
      config: {
        ...base,
        ...changes,
        accounts: { ...base.accounts, ...accounts },
      },
      log,
      startBackend,
      ...(onRestart !== undefined && { onRestart }),
    });
  let server = await start();
  return {
    get url() {
      return server.url;
    },
    get setupLink() {
      return server.setupLink;
    },
    dataDir,
    logged,
    async post(path, body, { bearer, headers = {} } = {}) {
      const response = await fetch(`${server.url}${path}`, {
        method: "POST",
        headers: {
          "Content-Type": "application/json",
          ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
          ...headers,
        },
        body: JSON.stringify(body),
      });
      return { status: response.status, body: await response.json(), headers: response.headers };
    },
    async logs(line) {
      while (!logged.includes(line)) {
        await new Promise((resolve) => logging.addEventListener("line", resolve, { once: true }));
      }
    },
    async socket(token, features) {
      const socket = await TestSocket.open(`${server.url}/api/sync`);
      socket.send({
        type: "Connect",
        sessionId: crypto.randomUUID(),
        connectionCount: 0,
        lastCloseReason: null,
        clientVersion: "test",
        ...(features !== undefined && { features }),
      });
      if (token !== undefined) socket.send({ type: "Authenticate", baseVersion: 0, token });
      return socket;
    },
    async restart(between = () => Promise.resolve()) {
      await server.stop();
      server = await start(await between() ?? {});
    },
    async [Symbol.asyncDispose]() {
      await server.stop();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

/** Sets up the server's first administrator. Returns a token. */
export async function bearerOf(server: TestServer): Promise<string> {
  const token = server.setupLink?.split("=").at(-1);
  const account = { token, email: "root@example.com", password: "correct horse" };
  return (await server.post("/api/auth/admin/setup", account)).body.accessToken;
}

/** A WebSocket with promises for messages by type. */
export class TestSocket implements AsyncDisposable {
  readonly #socket: WebSocket;
  // deno-lint-ignore no-explicit-any -- messages of many shapes
  readonly messages: any[] = [];
  /** Code of its close; `null` while it is open. */
  closeCode: number | null = null;
  readonly #closed = Promise.withResolvers<void>();
  readonly #arrivals = new EventTarget();

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.onmessage = ({ data }) => {
      this.messages.push({ ...JSON.parse(data), arrivedAt: performance.now() });
      this.#arrivals.dispatchEvent(new Event("message"));
    };
    socket.onclose = ({ code }) => {
      this.closeCode = code;
      this.#closed.resolve();
      this.#arrivals.dispatchEvent(new Event("message"));
    };
  }

  static async open(url: string, headers: Readonly<Record<string, string>> = {}): Promise<TestSocket> {
    // The platform's types lack headers here.
    const socket = new WebSocket(url.replace(/^http/, "ws"), { headers } as unknown as string[]);
    const opened = new TestSocket(socket);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = () => reject(new Error("The socket did not open"));
    });
    socket.onerror = null;
    return opened;
  }

  send(message: unknown): void {
    this.#socket.send(JSON.stringify(message));
  }

  /** Subscribes to queries without arguments, with ids from 0. Call it once. */
  subscribe(...paths: readonly string[]): void {
    this.send({
      type: "ModifyQuerySet",
      baseVersion: 0,
      newVersion: 1,
      modifications: paths.map((udfPath, queryId) => ({ type: "Add", queryId, udfPath, args: {} })),
    });
  }

  /** The first message that fits. Throws when the socket closes without one. */
  // deno-lint-ignore no-explicit-any -- messages of many shapes
  async message(fits: (message: any) => boolean): Promise<any> {
    for (;;) {
      const found = this.messages.find(fits);
      if (found !== undefined) return found;
      assert.notEqual(
        this.#socket.readyState,
        WebSocket.CLOSED,
        `closed after ${JSON.stringify(this.messages)}`,
      );
      await new Promise((resolve) => this.#arrivals.addEventListener("message", resolve, { once: true }));
    }
  }

  /** The identity version the server has confirmed. */
  identityVersion(version: number) {
    return this.message(({ type, endVersion }) => type === "Transition" && endVersion.identity >= version);
  }

  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#socket.readyState !== WebSocket.CLOSED) this.#socket.close();
    await this.#closed.promise;
  }
}
