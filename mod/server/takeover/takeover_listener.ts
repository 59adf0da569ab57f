/**
 * The old process's side of a takeover. It serves one new process at a time. Until the new process owns the data folder,
 * everything can be reverted: if the new process ends or takes too long, this server continues.
 */
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

/** Steps of the old process. */
export interface HandoverSteps {
  /** The host it was asked to listen on, and its port. */
  readonly address: { readonly host: string; readonly port: number };
  /** Releases the database and holds requests. Returns `false` if that is not possible now. */
  releaseDatabase(): Promise<boolean>;
  /** Lets other processes listen on its port. Returns `false` if that is not supported. */
  sharePort(): boolean;
  /** Called when the new process is lost. Reverts everything once that process has ended. */
  revert(): Promise<void>;
  /** Final step: the new process serves and accepts forwarded requests on `socket`. Throws if a handover is not allowed any more. */
  complete(newProcess: { readonly socket: string; readonly key: string }): void;
}

export interface TakeoverListenerOptions {
  /** Absolute path. */
  readonly dataDir: string;
  readonly server: HandoverSteps;
  readonly log: Log;
  /** Time from the release of the database until the new process serves, in milliseconds. */
  readonly switchMs?: number;
}

export class TakeoverListener implements AsyncDisposable {
  readonly #options: TakeoverListenerOptions;
  readonly #socket: LocalSocket;
  readonly #connections = new Set<Deno.Conn>();
  /** Id of the new process that is connected. */
  #newProcess: number | null = null;
  /** Connection of the process that has taken over. */
  #owner: Deno.Conn | null = null;
  readonly #serving: Promise<void>;
  /** After closing, the socket file may belong to the new process. */
  #closed = false;

  private constructor(options: TakeoverListenerOptions, socket: LocalSocket) {
    this.#options = options;
    this.#socket = socket;
    this.#serving = this.#accept();
  }

  static async open(options: TakeoverListenerOptions): Promise<TakeoverListener> {
    return new TakeoverListener(options, await LocalSocket.open(options.dataDir, takeoverSocketFile));
  }

  /** Stops accepting takeovers. A process that has taken over stays connected until this one ends. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket[Symbol.dispose]();
    for (const connection of this.#connections) if (connection !== this.#owner) closeQuietly(connection);
  }

  /** Call after the server has released everything. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
    if (this.#owner !== null) {
      await send(this.#owner, { type: "ended" }).catch(() => {});
      closeQuietly(this.#owner);
    }
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
    const lines = this.#messages(connection);
    const asked = await lines.next();
    if (asked.done === true || asked.value.type !== "ask") return;
    const { protocol, pid } = asked.value;
    const refusal = this.#refusal(protocol);
    if (refusal !== null) return await send(connection, { type: "refused", message: refusal });
    this.#newProcess = pid;
    try {
      await send(connection, { type: "here", ...this.#options.server.address, pid: Deno.pid });
      await this.#handOver(connection, lines);
    } finally {
      this.#newProcess = null;
    }
  }

  #refusal(protocol: number): string | null {
    if (protocol !== TAKEOVER_PROTOCOL) {
      return "The running server has an incompatible version. Stop it first";
    }
    if (this.#owner !== null) return "Another process has just taken over";
    if (this.#newProcess === null) return null;
    return `Another server (process ${this.#newProcess}) is taking over already`;
  }

  async #handOver(connection: Deno.Conn, messages: AsyncGenerator<NewProcessMessage>): Promise<void> {
    const { server, log } = this.#options;
    let step: "asked" | "letGo" | "given" = "asked";
    let timer: ReturnType<typeof setTimeout> | undefined;
    let late = false;
    try {
      for await (const message of messages) {
        if (message.type === "letGo" && step === "asked") {
          log("info", "Another process takes over: requests wait until it is ready", {
            process: this.#newProcess,
          });
          if (!await server.releaseDatabase()) {
            const message =
              "The running server cannot hand over now: it is loading functions or stopping. Try again";
            return await send(connection, { type: "refused", message });
          }
          step = "letGo";
          timer = setTimeout(() => {
            late = true;
            closeQuietly(connection);
          }, this.#options.switchMs ?? takeoverLimits.switchMs);
          await send(connection, { type: "gone" });
        } else if (message.type === "sharePort" && step === "letGo") {
          await send(connection, { type: "port", shared: server.sharePort() });
        } else if (message.type === "serving" && step === "letGo") {
          clearTimeout(timer);
          server.complete(message);
          step = "given";
          this.#owner = connection;
          await send(connection, { type: "yours" });
        } else throw new TypeError(`"${message.type}" is out of order`);
      }
    } catch (error) {
      if (!late && !isGone(error)) throw error;
    } finally {
      clearTimeout(timer);
      if (step === "letGo") {
        log(
          "warn",
          `The takeover failed because the new process ${
            late ? "took too long" : "ended"
          }; this server continues`,
          { code: "takeover" },
        );
        closeQuietly(connection);
        await server.revert();
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
