/** The new process's side of a takeover: asks the old process, step by step, to hand over. */
import { StartError } from "../../config/start_error.ts";
import { closeQuietly, connectLocal, readLines, writeLine } from "../../kit/local_socket.ts";
import { takeoverLimits } from "../limits.ts";
import { isGone } from "./takeover_listener.ts";
import {
  type NewProcessMessage,
  type OldProcessMessage,
  parseOldProcessMessage,
  TAKEOVER_PROTOCOL,
  takeoverSocketFile,
} from "./messages.ts";

export class OldProcess implements AsyncDisposable {
  readonly #connection: Deno.Conn;
  readonly #dataDir: string;
  readonly #answers: ((answer: OldProcessMessage | Error) => void)[] = [];
  readonly #lost = Promise.withResolvers<never>();
  readonly #ended = Promise.withResolvers<void>();
  readonly #reading: Promise<void>;
  #address: { readonly host: string; readonly port: number; readonly pid: number } = {
    host: "",
    port: 0,
    pid: 0,
  };
  /** Whether this process has closed the connection. */
  #closed = false;
  /** Whether this process owns the data folder. */
  #ownsFolder = false;
  /** Acquires the data folder exclusively if the old process dies after releasing the database. */
  #inherit: () => Promise<boolean> = () => Promise.resolve(false);
  #hasLetGo = false;
  /** Whether the data folder was acquired in that way. */
  #inherited = false;
  /** Error for further requests; set when the connection ends. */
  #gone: StartError | null = null;

  private constructor(connection: Deno.Conn, dataDir: string) {
    this.#connection = connection;
    this.#dataDir = dataDir;
    this.#lost.promise.catch(() => {});
    this.#reading = this.#read();
  }

  /** Connects to the server of a data folder. Returns `null` if none listens. Throws a `StartError` if it refuses. */
  static async find(dataDir: string): Promise<OldProcess | null> {
    let connection;
    try {
      connection = await connectLocal(dataDir, takeoverSocketFile);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.ConnectionRefused) {
        return null;
      }
      throw error;
    }
    const oldProcess = new OldProcess(connection, dataDir);
    try {
      const here = await oldProcess.#ask(
        { type: "ask", protocol: TAKEOVER_PROTOCOL, pid: Deno.pid },
        "here",
      );
      if (here !== null) oldProcess.#address = here;
      return oldProcess;
    } catch (error) {
      await oldProcess[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Address that it listens on. */
  get address(): { readonly host: string; readonly port: number } {
    const { host, port } = this.#address;
    return { host, port };
  }

  get pid(): number {
    return this.#address.pid;
  }

  /** Rejects with a `StartError` if the old process continues or ends before the handover. */
  get lost(): Promise<never> {
    return this.#lost.promise;
  }

  /** Resolves when the old process has released everything or is gone. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /**
   * Resolves when the old process has released the database. If it dies after that, `inherit` acquires the data folder
   * exclusively, or returns `false`.
   */
  async releaseDatabase(inherit: () => Promise<boolean>): Promise<void> {
    this.#inherit = inherit;
    await this.#ask({ type: "letGo" }, "gone");
  }

  /** Whether this process may listen on the same port. */
  async sharePort(): Promise<boolean> {
    const answer = await this.#ask({ type: "sharePort" }, "port");
    return answer?.shared ?? false;
  }

  /** Completes the handover: this process serves and accepts forwarded requests on `socket`. */
  async serving({ socket, key }: { readonly socket: string; readonly key: string }): Promise<void> {
    await this.#ask({ type: "serving", socket, key }, "yours");
  }

  /** Closes the connection. Without a completed handover, the old process continues. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    closeQuietly(this.#connection);
    await this.#reading;
  }

  /** Returns `null` if the old process is dead and its data folder was acquired. */
  async #ask<Type extends OldProcessMessage["type"]>(
    message: NewProcessMessage,
    type: Type,
  ): Promise<Extract<OldProcessMessage, { type: Type }> | null> {
    if (this.#inherited) return null;
    if (this.#gone !== null) throw this.#gone;
    const { promise, resolve } = Promise.withResolvers<OldProcessMessage | Error>();
    this.#answers.push(resolve);
    await writeLine(this.#connection, message).catch((error) => {
      if (!isGone(error)) throw error;
    });
    const answer = await promise;
    if (this.#inherited) return null;
    if (answer instanceof Error) throw answer;
    if (answer.type === "refused") throw new StartError(answer.message);
    if (answer.type === type) return answer as Extract<OldProcessMessage, { type: Type }>;
    throw new StartError(`Expected "${type}" from the running server, but received "${answer.type}"`);
  }

  async #read(): Promise<void> {
    let gone = new StartError(
      "The old process has ended or continues to serve. Start again",
      { code: "takeover" },
    );
    try {
      for await (const line of readLines(this.#connection, takeoverLimits.lineCharsMax)) {
        const message = parseOldProcessMessage(line);
        if (message.type === "ended") break;
        if (message.type === "gone") this.#hasLetGo = true;
        if (message.type === "yours") this.#ownsFolder = true;
        if (message.type === "refused") gone = new StartError(message.message);
        this.#answers.shift()?.(message);
      }
    } catch {
      // An invalid message is handled like the end of the connection.
    }
    if (!this.#ownsFolder && await this.#isDead()) {
      // Waiting for the lock may take a while.
      this.#ownsFolder = this.#inherited = await this.#inherit().catch(() => false);
    }
    this.#gone = gone;
    for (const answer of this.#answers.splice(0)) answer(gone);
    if (!this.#ownsFolder) this.#lost.reject(gone);
    this.#ended.resolve();
  }

  /** An old process that lives continues by itself, and keeps its socket. */
  async #isDead(): Promise<boolean> {
    if (!this.#hasLetGo || this.#closed) return false;
    try {
      closeQuietly(await connectLocal(this.#dataDir, takeoverSocketFile));
      return false;
    } catch (error) {
      return error instanceof Deno.errors.NotFound || error instanceof Deno.errors.ConnectionRefused;
    }
  }
}
