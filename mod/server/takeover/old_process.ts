/** The new process's side of a takeover. The folder's lock decides who leads, so a dying old process needs no special case. */
import { StartError } from "../../config/start_error.ts";
import { closeQuietly, connectLocal, readLines, writeLine } from "../../kit/local_socket.ts";
import { takeoverLimits } from "../limits.ts";
import {
  type NewProcessMessage,
  type OldProcessMessage,
  parseOldProcessMessage,
  TAKEOVER_PROTOCOL,
  takeoverSocketFile,
} from "./messages.ts";
import { isGone } from "./takeover_listener.ts";

export interface WaitLimits {
  /** Time for an answer that needs no work. */
  readonly answerMs: number;
  /** Time to finish running calls and release the data folder. */
  readonly stepDownMs: number;
}

export class OldProcess implements Disposable {
  readonly #connection: Deno.Conn;
  readonly #lines: AsyncGenerator<string>;
  readonly #limits: WaitLimits;
  #address: { readonly host: string; readonly port: number } = { host: "", port: 0 };

  private constructor(connection: Deno.Conn, limits: WaitLimits) {
    this.#connection = connection;
    this.#lines = readLines(connection, takeoverLimits.lineCharsMax);
    this.#limits = limits;
  }

  /** Connects to the server of a data folder. Returns `null` if none listens. Throws a `StartError` if it refuses. */
  static async find(dataDir: string, limits: WaitLimits = takeoverLimits): Promise<OldProcess | null> {
    let connection;
    try {
      connection = await connectLocal(dataDir, takeoverSocketFile);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.ConnectionRefused) {
        return null;
      }
      throw error;
    }
    const oldProcess = new OldProcess(connection, limits);
    try {
      const here = await oldProcess.#ask({ type: "ask", protocol: TAKEOVER_PROTOCOL, pid: Deno.pid }, "here");
      if (here === null) throw new StartError("The running server ended. Start again", { code: "takeover" });
      oldProcess.#address = here;
      return oldProcess;
    } catch (error) {
      oldProcess[Symbol.dispose]();
      throw error;
    }
  }

  get address(): { readonly host: string; readonly port: number } {
    const { host, port } = this.#address;
    return { host, port };
  }

  /** Resolves when it has released the data folder or is gone. Throws a `StartError` if it refuses or does not answer. */
  async stepDown(): Promise<void> {
    await this.#ask({ type: "stepDown" }, "released", this.#limits.stepDownMs);
  }

  /** Reports that this process leads. Does nothing if the old process is gone. */
  async leading(): Promise<void> {
    await this.#send({ type: "leading" });
  }

  /** Closes the connection. If this process does not lead, the old one continues. */
  [Symbol.dispose](): void {
    closeQuietly(this.#connection);
  }

  /** Returns `null` if the old process is gone. */
  async #ask<Type extends OldProcessMessage["type"]>(
    message: NewProcessMessage,
    type: Type,
    waitMs: number = this.#limits.answerMs,
  ): Promise<Extract<OldProcessMessage, { type: Type }> | null> {
    await this.#send(message);
    const { promise: late, resolve } = Promise.withResolvers<"late">();
    const timer = setTimeout(() => resolve("late"), waitMs);
    const line = await Promise.race([this.#lines.next(), late]).catch((error) => {
      if (isGone(error)) return null;
      throw error;
    }).finally(() => clearTimeout(timer));
    if (line === "late") {
      throw new StartError(
        `The running server did not answer within ${waitMs / 1000} s. Stop it first`,
        { code: "takeover" },
      );
    }
    if (line === null || line.done === true) return null;
    const answer = parseOldProcessMessage(line.value);
    if (answer.type === "refused") throw new StartError(answer.message, { code: "takeover" });
    if (answer.type === type) return answer as Extract<OldProcessMessage, { type: Type }>;
    throw new StartError(`Expected "${type}" from the running server, but received "${answer.type}"`, {
      code: "takeover",
    });
  }

  async #send(message: NewProcessMessage): Promise<void> {
    await writeLine(this.#connection, message).catch((error) => {
      if (!isGone(error)) throw error;
    });
  }
}
