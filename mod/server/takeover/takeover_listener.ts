/** The old process's side of a takeover, one at a time. If the new process ends before it leads, this one leads again. */
import { closeQuietly, LocalSocket, readLines, writeLine } from "../../kit/local_socket.ts";
import type { Log } from "../../kit/log.ts";
import { takeoverLimits } from "../limits.ts";
import {
  type NewProcessMessage,
  type OldProcessMessage,
  parseNewProcessMessage,
  TAKEOVER_PROTOCOL,
  takeoverSocketFile,
} from "./messages.ts";

export interface ReplacedServer {
  readonly address: { readonly host: string; readonly port: number };
  /** Ends the backend and releases the data folder. Returns `false` if that is not possible now. */
  stepDown(): Promise<boolean>;
  /** Called when the new process leads. */
  handedOver(): void;
  /** Called after {@linkcode stepDown} if the new process is lost. Never rejects. */
  resume(): Promise<void>;
}

export interface TakeoverListenerOptions {
  /** Absolute path. */
  readonly dataDir: string;
  readonly server: ReplacedServer;
  /** Time for the new process to lead after the folder is released. */
  readonly leadMs?: number;
  readonly log: Log;
}

const CANNOT_NOW = "The running server cannot hand over now: it is starting or stopping. Try again";

export class TakeoverListener implements AsyncDisposable {
  readonly #options: TakeoverListenerOptions;
  readonly #socket: LocalSocket;
  readonly #connections = new Set<Deno.Conn>();
  /** Id of the new process that is connected. */
  #newProcess: number | null = null;
  readonly #serving: Promise<void>;
  #closed = false;

  private constructor(options: TakeoverListenerOptions, socket: LocalSocket) {
    this.#options = options;
    this.#socket = socket;
    this.#serving = this.#accept();
  }

  /** The caller holds the lock of the data folder. */
  static async open(options: TakeoverListenerOptions): Promise<TakeoverListener> {
    return new TakeoverListener(options, await LocalSocket.open(options.dataDir, takeoverSocketFile));
  }

  /** Stops accepting takeovers, before the data folder is released. A takeover in progress continues. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket[Symbol.dispose]();
  }

  /** Ends takeovers in progress. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
    for (const connection of this.#connections) closeQuietly(connection);
    await this.#serving;
  }

  async #accept(): Promise<void> {
    const sessions = new Set<Promise<void>>();
    for await (const connection of this.#socket.listener) {
      this.#connections.add(connection);
      const session = this.#serve(connection).catch((error) => {
        this.#options.log("warn", "A takeover failed", { code: "takeover", error });
      }).finally(() => {
        this.#connections.delete(connection);
        closeQuietly(connection);
        sessions.delete(session);
      });
      sessions.add(session);
    }
    await Promise.all(sessions);
  }

  async #serve(connection: Deno.Conn): Promise<void> {
    const messages = this.#messages(connection);
    const asked = await messages.next();
    if (asked.done === true || asked.value.type !== "ask") return;
    const { protocol, pid } = asked.value;
    const refusal = this.#refusal(protocol);
    if (refusal !== null) return await send(connection, { type: "refused", message: refusal });
    this.#newProcess = pid;
    try {
      await send(connection, { type: "here", ...this.#options.server.address, pid: Deno.pid });
      await this.#handOver(connection, messages);
    } finally {
      this.#newProcess = null;
    }
  }

  #refusal(protocol: number): string | null {
    if (protocol !== TAKEOVER_PROTOCOL) {
      return "The running server has an incompatible version. Stop it first";
    }
    if (this.#newProcess === null) return null;
    return `Another server (process ${this.#newProcess}) is taking over already`;
  }

  async #handOver(connection: Deno.Conn, messages: AsyncGenerator<NewProcessMessage>): Promise<void> {
    const { server, log, leadMs = takeoverLimits.leadMs } = this.#options;
    let released = false;
    let late: ReturnType<typeof setTimeout> | undefined;
    try {
      for await (const message of messages) {
        if (message.type === "stepDown" && !released) {
          log("info", "Another process takes over: closing sockets and finishing running calls", {
            process: this.#newProcess,
          });
          if (!await server.stepDown()) {
            return await send(connection, { type: "refused", message: CANNOT_NOW });
          }
          released = true;
          // A frozen process does not close its connection.
          late = setTimeout(() => closeQuietly(connection), leadMs);
          await send(connection, { type: "released" });
        } else if (message.type === "leading" && released) {
          released = false;
          return server.handedOver();
        } else throw new TypeError(`"${message.type}" is out of order`);
      }
    } catch (error) {
      if (!isGone(error)) throw error;
    } finally {
      clearTimeout(late);
      if (released) {
        log("warn", "The takeover failed because the new process does not lead; this server continues", {
          code: "takeover",
        });
        await server.resume();
      }
    }
  }

  async *#messages(connection: Deno.Conn): AsyncGenerator<NewProcessMessage> {
    for await (const line of readLines(connection, takeoverLimits.lineCharsMax)) {
      yield parseNewProcessMessage(line);
    }
  }
}

/** Whether an error means that the connection was closed, at either end. */
export function isGone(error: unknown): boolean {
  return error instanceof Deno.errors.BadResource || error instanceof Deno.errors.ConnectionReset ||
    error instanceof Deno.errors.BrokenPipe || error instanceof Deno.errors.Interrupted;
}

async function send(connection: Deno.Conn, message: OldProcessMessage): Promise<void> {
  await writeLine(connection, message);
}
