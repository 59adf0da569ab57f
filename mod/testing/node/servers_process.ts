/** The process that hosts test servers for tests in Node. It starts with the first server and ends with the test. */
import { type ChildProcess, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { FunctionError } from "../../client/mod.ts";
import {
  MESSAGE_PREFIX,
  type OperationName,
  type Operations,
  type ProcessMessage,
  type WireError,
} from "../remote/messages.ts";

interface Pending {
  readonly server: number | null;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** The local end of a socket. */
export interface SocketEnd {
  received(text: string): void;
  closed(code: number, reason: string): void;
}

export class ServersProcess {
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  readonly #sockets = new Map<number, SocketEnd>();
  readonly #works = new Map<number, () => void>();
  /** Last known clock of each server. */
  readonly #clocks = new Map<number, number>();
  #lastId = 0;
  #held = true;
  #ended: Error | null = null;

  private constructor(child: ChildProcess) {
    this.#child = child;
    if (child.stdout !== null) {
      createInterface({ input: child.stdout }).on("line", (line) => this.#line(line));
    }
    child.on("error", (error) => this.#end(error));
    child.on(
      "exit",
      (code) => this.#end(new Error(`The test server process exited with code ${code}`)),
    );
    this.#hold();
  }

  static start(): ServersProcess {
    const home = dirname(createRequire(import.meta.url).resolve("syncline/package.json"));
    const program = join(home, "bin/syncline.mjs");
    const child = spawn(process.execPath, [program, "test-servers"], { stdio: ["pipe", "pipe", "inherit"] });
    return new ServersProcess(child);
  }

  /** Returns a new number for a server, socket or callback. */
  number(): number {
    return ++this.#lastId;
  }

  /** The server's clock. */
  now(server: number): number {
    return this.#clocks.get(server) ?? 0;
  }

  async ask<Name extends OperationName>(
    name: Name,
    args: Operations[Name]["args"],
  ): Promise<Operations[Name]["result"]> {
    if (this.#ended !== null) throw this.#ended;
    const id = this.number();
    return await new Promise<unknown>((resolve, reject) => {
      this.#pending.set(id, { server: "server" in args ? args.server : null, resolve, reject });
      this.#hold();
      this.#child.stdin?.write(`${JSON.stringify({ id, name, args })}\n`);
    }) as Operations[Name]["result"];
  }

  /** Sends a message that has no response. */
  send<Name extends OperationName>(name: Name, args: Operations[Name]["args"]): void {
    void this.ask(name, args).catch(() => {});
  }

  addSocket(number: number, end: SocketEnd): void {
    this.#sockets.set(number, end);
  }

  removeSocket(number: number): void {
    this.#sockets.delete(number);
  }

  /** `begun` is called when the transaction has started. */
  addWork(number: number, begun: () => void): void {
    this.#works.set(number, begun);
  }

  #line(line: string): void {
    if (!line.startsWith(MESSAGE_PREFIX)) {
      process.stdout.write(`${line}\n`);
      return;
    }
    const message = JSON.parse(line.slice(MESSAGE_PREFIX.length)) as ProcessMessage;
    if ("work" in message) {
      this.#works.get(message.work)?.();
      this.#works.delete(message.work);
    } else if ("socket" in message) {
      const end = this.#sockets.get(message.socket);
      if ("text" in message) end?.received(message.text);
      else end?.closed(message.closed.code, message.closed.reason);
    } else {
      this.#answered(message);
    }
  }

  #answered(message: Extract<ProcessMessage, { readonly answer: number }>): void {
    const pending = this.#pending.get(message.answer);
    this.#pending.delete(message.answer);
    this.#hold();
    if (pending === undefined) return;
    if (pending.server !== null && message.now !== undefined) this.#clocks.set(pending.server, message.now);
    if ("error" in message) pending.reject(errorOf(message.error));
    else pending.resolve(message.value);
  }

  /** Keeps Node running only while a response is pending. */
  #hold(): void {
    const held = this.#pending.size > 0;
    if (held === this.#held) return;
    this.#held = held;
    for (const part of [this.#child, this.#child.stdin, this.#child.stdout] as (Refable | null)[]) {
      if (held) part?.ref();
      else part?.unref();
    }
  }

  #end(error: Error): void {
    this.#ended = error;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}

interface Refable {
  ref(): unknown;
  unref(): unknown;
}

/** Re-creates the error as thrown in the server process. */
function errorOf({ name, message, stack, call }: WireError): Error {
  const error = call === undefined
    ? Object.assign(name === "RangeError" ? new RangeError(message) : new Error(message), { name })
    : new FunctionError(message, { ...call, logLines: [] });
  if (stack !== undefined) error.stack = stack;
  return error;
}
