/** The side of a server that takes over: the server that has the data folder now, asked step by step to give way. */
import { StartError } from "../../config/start_error.ts";
import { closeQuietly, connectLocal, readLines, writeLine } from "../../kit/local_socket.ts";
import { takeoverLimits } from "../limits.ts";
import { isGone } from "./door.ts";
import {
  type FromPredecessor,
  type FromSuccessor,
  parseFromPredecessor,
  TAKEOVER_PROTOCOL,
  takeoverSocketFile,
} from "./messages.ts";

export class Predecessor implements AsyncDisposable {
  readonly #connection: Deno.Conn;
  readonly #dataDir: string;
  readonly #answers: ((answer: FromPredecessor | Error) => void)[] = [];
  readonly #lost = Promise.withResolvers<never>();
  readonly #ended = Promise.withResolvers<void>();
  readonly #reading: Promise<void>;
  #address: { readonly host: string; readonly port: number; readonly pid: number } = {
    host: "",
    port: 0,
    pid: 0,
  };
  /** Whether this server has given up, or needs it no more. */
  #left = false;
  /** Whether the folder is this server's. */
  #given = false;
  /** Gets the folder for this server alone, when the other one dies after it has let go. */
  #inherit: () => Promise<boolean> = () => Promise.resolve(false);
  #hasLetGo = false;
  /** Whether it died after it had let go, and the folder is this server's for that. */
  #inherited = false;
  /** Why nothing more is to be heard of it; set at its end. */
  #gone: StartError | null = null;

  private constructor(connection: Deno.Conn, dataDir: string) {
    this.#connection = connection;
    this.#dataDir = dataDir;
    this.#lost.promise.catch(() => {});
    this.#reading = this.#read();
  }

  /** Asks the server of a data folder. `null` when none listens; throws a `StartError` when it does not give way. */
  static async find(dataDir: string): Promise<Predecessor | null> {
    let connection;
    try {
      connection = await connectLocal(dataDir, takeoverSocketFile);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.ConnectionRefused) {
        return null;
      }
      throw error;
    }
    const predecessor = new Predecessor(connection, dataDir);
    try {
      const here = await predecessor.#ask(
        { type: "ask", protocol: TAKEOVER_PROTOCOL, pid: Deno.pid },
        "here",
      );
      if (here !== null) predecessor.#address = here;
      return predecessor;
    } catch (error) {
      await predecessor[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Where it listens. */
  get address(): { readonly host: string; readonly port: number } {
    const { host, port } = this.#address;
    return { host, port };
  }

  get pid(): number {
    return this.#address.pid;
  }

  /** Rejects with a `StartError` when it has gone on by itself, or ended, before the folder was this server's. */
  get lost(): Promise<never> {
    return this.#lost.promise;
  }

  /** Resolves when it has let everything go, or is gone. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /**
   * Resolves when the database is nobody's. When the other one dies from then on, `inherit` is to get the folder for this
   * server alone, or to say that it cannot.
   */
  async letGo(inherit: () => Promise<boolean>): Promise<void> {
    this.#inherit = inherit;
    await this.#ask({ type: "letGo" }, "gone");
  }

  /** Whether this process may listen on its port beside it. */
  async sharePort(): Promise<boolean> {
    const answer = await this.#ask({ type: "sharePort" }, "port");
    return answer?.shared ?? false;
  }

  /** Tells it that this server serves, and where it takes what still comes there. Then the folder is this one's. */
  async serving({ socket, key }: { readonly socket: string; readonly key: string }): Promise<void> {
    await this.#ask({ type: "serving", socket, key }, "yours");
  }

  /** Without the folder being this server's, the other one goes on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#left = true;
    closeQuietly(this.#connection);
    await this.#reading;
  }

  /** `null`: it is dead, and everything is this server's. */
  async #ask<Type extends FromPredecessor["type"]>(
    message: FromSuccessor,
    type: Type,
  ): Promise<Extract<FromPredecessor, { type: Type }> | null> {
    if (this.#inherited) return null;
    if (this.#gone !== null) throw this.#gone;
    const { promise, resolve } = Promise.withResolvers<FromPredecessor | Error>();
    this.#answers.push(resolve);
    await writeLine(this.#connection, message).catch((error) => {
      if (!isGone(error)) throw error;
    });
    const answer = await promise;
    if (this.#inherited) return null;
    if (answer instanceof Error) throw answer;
    if (answer.type === "refused") throw new StartError(answer.message);
    if (answer.type === type) return answer as Extract<FromPredecessor, { type: Type }>;
    throw new StartError(`The server that runs was to answer "${type}", and said "${answer.type}"`);
  }

  async #read(): Promise<void> {
    let gone = new StartError(
      "The server that was to give way has ended, or goes on by itself: start again",
      { code: "takeover" },
    );
    try {
      for await (const line of readLines(this.#connection, takeoverLimits.lineCharsMax)) {
        const message = parseFromPredecessor(line);
        if (message.type === "ended") break;
        if (message.type === "gone") this.#hasLetGo = true;
        if (message.type === "yours") this.#given = true;
        if (message.type === "refused") gone = new StartError(message.message);
        this.#answers.shift()?.(message);
      }
    } catch {
      // What it says is not understood any more, or it is gone: the same to this server.
    }
    if (!this.#given && await this.#isDead()) {
      // The folder may be given up meanwhile.
      this.#given = this.#inherited = await this.#inherit().catch(() => false);
    }
    this.#gone = gone;
    for (const answer of this.#answers.splice(0)) answer(gone);
    if (!this.#given) this.#lost.reject(gone);
    this.#ended.resolve();
  }

  /** Where it lives it goes on by itself, and takes its socket away only when it does not. */
  async #isDead(): Promise<boolean> {
    if (!this.#hasLetGo || this.#left) return false;
    try {
      closeQuietly(await connectLocal(this.#dataDir, takeoverSocketFile));
      return false;
    } catch (error) {
      return error instanceof Deno.errors.NotFound || error instanceof Deno.errors.ConnectionRefused;
    }
  }
}
