/**
 * The side of a server that can be asked to give way. One successor at a time, and until it is told that the folder is its
 * own everything can be taken back: when it goes away, or takes too long, this server goes on.
 */
import { closeQuietly, LocalSocket, readLines, writeLine } from "../../kit/local_socket.ts";
import type { Log } from "../../kit/log.ts";
import { takeoverLimits } from "../limits.ts";
import {
  type FromPredecessor,
  type FromSuccessor,
  parseFromSuccessor,
  TAKEOVER_PROTOCOL,
  takeoverSocketFile,
} from "./messages.ts";

/** What a server does when it gives way, step by step. */
export interface GivesWay {
  /** As it was asked to listen, and the port it has. */
  readonly address: { readonly host: string; readonly port: number };
  /** Lets go of the database; requests wait from now on. `false` when that cannot be done now. */
  letGo(): Promise<boolean>;
  /** Lets other processes listen on its port; `false` where that cannot be. */
  sharePort(): boolean;
  /** The successor is lost: when its process is gone, all that was let go is its own again. */
  takeBack(): Promise<void>;
  /** The successor serves, and takes on this socket what comes here: there is no way back. Throws when it may not any more. */
  giveWay(successor: { readonly socket: string; readonly key: string }): void;
}

export interface DoorOptions {
  /** Absolute. */
  readonly dataDir: string;
  readonly server: GivesWay;
  readonly log: Log;
  /** Time from letting go to the successor's word that it serves. */
  readonly switchMs?: number;
}

export class TakeoverDoor implements AsyncDisposable {
  readonly #options: DoorOptions;
  readonly #socket: LocalSocket;
  readonly #connections = new Set<Deno.Conn>();
  /** Process of the successor that is being served. */
  #successor: number | null = null;
  /** The connection of the one that it has given way to. */
  #heir: Deno.Conn | null = null;
  readonly #serving: Promise<void>;
  /** The socket's name may be an heir's by then. */
  #closed = false;

  private constructor(options: DoorOptions, socket: LocalSocket) {
    this.#options = options;
    this.#socket = socket;
    this.#serving = this.#accept();
  }

  static async open(options: DoorOptions): Promise<TakeoverDoor> {
    return new TakeoverDoor(options, await LocalSocket.open(options.dataDir, takeoverSocketFile));
  }

  /** Nobody can ask any more; an heir stays connected until it is told of the end. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket[Symbol.dispose]();
    for (const connection of this.#connections) if (connection !== this.#heir) closeQuietly(connection);
  }

  /** The server has let everything go. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
    if (this.#heir !== null) {
      await say(this.#heir, { type: "ended" }).catch(() => {});
      closeQuietly(this.#heir);
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
    if (refusal !== null) return await say(connection, { type: "refused", message: refusal });
    this.#successor = pid;
    try {
      await say(connection, { type: "here", ...this.#options.server.address, pid: Deno.pid });
      await this.#passOver(connection, lines);
    } finally {
      this.#successor = null;
    }
  }

  #refusal(protocol: number): string | null {
    if (protocol !== TAKEOVER_PROTOCOL) {
      return "The server that runs is of a version that cannot be taken over by this one: stop it first";
    }
    if (this.#heir !== null) return "The server that runs has just been taken over";
    if (this.#successor === null) return null;
    return `Another server (process ${this.#successor}) is taking over already`;
  }

  async #passOver(connection: Deno.Conn, messages: AsyncGenerator<FromSuccessor>): Promise<void> {
    const { server, log } = this.#options;
    let step: "asked" | "letGo" | "given" = "asked";
    let timer: ReturnType<typeof setTimeout> | undefined;
    let late = false;
    try {
      for await (const message of messages) {
        if (message.type === "letGo" && step === "asked") {
          log("info", "Another server takes over: requests wait until it is ready", {
            process: this.#successor,
          });
          if (!await server.letGo()) {
            const message =
              "The server that runs cannot give way now: it is loading functions, or ending. Try again";
            return await say(connection, { type: "refused", message });
          }
          step = "letGo";
          timer = setTimeout(() => {
            late = true;
            closeQuietly(connection);
          }, this.#options.switchMs ?? takeoverLimits.switchMs);
          await say(connection, { type: "gone" });
        } else if (message.type === "sharePort" && step === "letGo") {
          await say(connection, { type: "port", shared: server.sharePort() });
        } else if (message.type === "serving" && step === "letGo") {
          clearTimeout(timer);
          server.giveWay(message);
          step = "given";
          this.#heir = connection;
          await say(connection, { type: "yours" });
        } else throw new TypeError(`"${message.type}" came out of turn`);
      }
    } catch (error) {
      if (!late && !isGone(error)) throw error;
    } finally {
      clearTimeout(timer);
      if (step === "letGo") {
        log(
          "warn",
          `The takeover failed, as the other server ${late ? "took too long" : "ended"}: this one goes on`,
          { code: "takeover" },
        );
        closeQuietly(connection);
        await server.takeBack();
      }
    }
  }

  async *#messages(connection: Deno.Conn): AsyncGenerator<FromSuccessor> {
    for await (const line of readLines(connection, takeoverLimits.lineCharsMax)) {
      yield parseFromSuccessor(line);
    }
  }
}

/** Whether a connection was closed, at either end. */
export function isGone(error: unknown): boolean {
  return error instanceof Deno.errors.BadResource || error instanceof Deno.errors.ConnectionReset ||
    error instanceof Deno.errors.BrokenPipe || error instanceof Deno.errors.Interrupted;
}

async function say(connection: Deno.Conn, message: FromPredecessor): Promise<void> {
  await writeLine(connection, message);
}
