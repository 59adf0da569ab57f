/** One isolate as a child process: boot, frames, progress file, end. */
import type { Log } from "../../../kit/log.ts";
import { isolateLimits } from "../../limits.ts";
import { FrameSender, readFrames, type WireFrame } from "../../wire/segment_frames.ts";
import { idleProgress, parseProgress, type Progress } from "../../wire/progress_file.ts";
import type { AppendRow, Boot, CheckBounds, FromIsolate, ToIsolate } from "../../wire/messages.ts";
import type { CommitAppender } from "../writer/commit_appender.ts";
import type { Clock } from "../../../kit/clock.ts";
import type { Death, Isolate, IsolateFrame, Ready, StartResult } from "./isolate.ts";
import { IsolateStderr } from "./isolate_stderr.ts";
import type { BootGate } from "./prestarted_isolates.ts";

/** Time for an isolate to end after its socket is closed, before it is killed. */
const CLOSE_MS = 2_000;
const PROGRESS_BYTES = 16;
/** Abort messages of V8 and the runtime when memory runs out. */
const OUT_OF_MEMORY = /out of memory|allocation failed|\bOOM\b|^memory allocation of \d+ bytes failed/m;

/** Names the call that an isolate runs. The file outlives the isolate. */
export class ProgressReader {
  readonly #file: Deno.FsFile;
  readonly #bytes = new Uint8Array(PROGRESS_BYTES);
  /** The last recorded progress. Set when the file is closed. */
  #last: Progress | null | undefined;

  private constructor(file: Deno.FsFile) {
    this.#file = file;
  }

  /** Opens a file, new or left by an earlier isolate, and clears it. */
  static async open(path: string): Promise<ProgressReader> {
    const file = await Deno.open(path, { read: true, write: true, create: true, mode: 0o600 });
    try {
      file.writeSync(idleProgress);
    } catch (error) {
      file.close();
      throw error;
    }
    return new ProgressReader(file);
  }

  read(): Progress | null {
    if (this.#last !== undefined) return this.#last;
    this.#file.seekSync(0, Deno.SeekMode.Start);
    const read = this.#file.readSync(this.#bytes);
    return read === PROGRESS_BYTES ? parseProgress(this.#bytes) : null;
  }

  close(): void {
    this.#last = this.read();
    this.#file.close();
  }
}

export interface IsolateProcessOptions {
  readonly child: Deno.ChildProcess;
  readonly progress: ProgressReader;
  readonly clock: Clock;
  readonly log: Log;
  /** Rewrites paths of app files to the author's. */
  readonly authored: (text: string) => string;
  readonly rows: CommitAppender | null;
  readonly logOutput: (text: string) => void;
}

/** One child process from start to end. */
export class IsolateProcess implements Isolate {
  readonly #options: IsolateProcessOptions;
  readonly #stderr: IsolateStderr;
  readonly #ended = Promise.withResolvers<Death>();
  #sender: FrameSender | null = null;
  #conn: Deno.Conn | null = null;
  /** Called at most once when the app is loaded. `null` if not needed. */
  #onLoaded: (() => void) | null = null;
  #ready: Ready | null = null;
  #onFrame: ((frame: IsolateFrame) => void) | null = null;
  /** Whether the host is ending the isolate on purpose. */
  #isClosing = false;
  /** The protocol violation for which the host ends it. */
  #violation: string | null = null;

  constructor(options: IsolateProcessOptions) {
    const { child, clock, logOutput } = options;
    this.#options = options;
    this.#stderr = new IsolateStderr(child.stderr, { now: () => clock.now(), log: logOutput });
  }

  get pid(): number {
    return this.#options.child.pid;
  }

  get ready(): Ready {
    if (this.#ready === null) throw new Error("The isolate is not ready");
    return this.#ready;
  }

  get isReady(): boolean {
    return this.#ready !== null;
  }

  get ended(): Promise<Death> {
    return this.#ended.promise;
  }

  /**
   * Waits for its connection and answer, and from then on for its end. Loading the app has a time limit. Schema migration has
   * none, even if a refinement in the schema never ends: its duration depends on data and disk, and a killed isolate would
   * start over each time.
   */
  async boot(
    listener: Deno.Listener,
    { boot, gate, check, role, waits }: {
      readonly boot: () => Boot;
      readonly gate: BootGate | null;
      /** Whether it waits for `SchemaReady`. */
      readonly waits: boolean;
    } & Pick<Boot, "role" | "check">,
  ): Promise<StartResult> {
    const answer = Promise.withResolvers<StartResult>();
    const onAnswer = (result: StartResult) => {
      this.#onLoaded = null;
      answer.resolve(result);
    };
    const tooSlow = () =>
      onAnswer({
        ok: false,
        broken: true,
        message: `The app took longer than ${isolateLimits.startMs / 1000} s to load: ` +
          "at the top of one of its files, or of a package, is an await that does not settle or a loop that does not end",
      });
    let slow = this.#options.clock.after(isolateLimits.startMs, tooSlow);
    const held = gate === null ? null : async () => {
      // Waiting time does not count.
      slow.cancel();
      gate.connected();
      await gate.opened;
      slow = this.#options.clock.after(isolateLimits.startMs, tooSlow);
    };
    let fitted = (_ok: boolean) => {};
    if (check !== undefined) {
      this.#onLoaded = () => {
        slow.cancel();
        const late = this.#options.clock.after(check.msMax, () => onAnswer(looksTooLong(check)));
        fitted = () => late.cancel();
      };
    } else if (role === "writer") {
      this.#onLoaded = () => {
        slow.cancel();
        gate?.loaded();
        void Promise.resolve(gate?.fitted).then(() => fitted = this.#watchMigration());
      };
    } else if (role === "reader" && gate !== null) {
      this.#onLoaded = () => {
        slow.cancel();
        gate.loaded();
        void gate.fitted.then(() => slow = this.#options.clock.after(isolateLimits.startMs, tooSlow));
      };
    }
    const awaited = waits ? gate?.fitted ?? null : null;
    this.#live(listener, { boot, held, fitted: awaited, onAnswer });
    const result = await answer.promise;
    slow.cancel();
    fitted(result.ok);
    if (!result.ok) {
      this.kill();
      await this.ended;
    }
    return result;
  }

  receive(onFrame: (frame: IsolateFrame) => void): void {
    this.#onFrame = onFrame;
  }

  send(message: ToIsolate, segments: readonly string[] = []): void {
    this.#leave(this.#sender?.send(message, segments));
  }

  sendBytes(call: number, bytes: Uint8Array): void {
    this.#leave(this.#sender?.sendBytes(call, bytes));
  }

  sendText(text: string): void {
    this.#leave(this.#sender?.sendText(text));
  }

  progress(): Progress | null {
    return this.#options.progress.read();
  }

  kill(): void {
    this.#isClosing = true;
    kill(this.#options.child);
  }

  end(why: string): void {
    this.#violation ??= why;
    kill(this.#options.child);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    close(this.#conn);
    const late = this.#options.clock.after(CLOSE_MS, () => this.kill());
    await this.ended;
    late.cancel();
  }

  /** Logs a long schema migration. Call the returned function when it ends. */
  #watchMigration(): (ok: boolean) => void {
    const since = this.#options.clock.now();
    let logged = false;
    const timer = this.#options.clock.after(isolateLimits.migrationLogMs, () => {
      logged = true;
      this.#options.log(
        "info",
        "Migrating tables and indexes to the app's schema: this takes a while with much data, " +
          "and starts over if the server is stopped before the end",
      );
    });
    return (ok) => {
      timer.cancel();
      if (!logged || !ok) return;
      const seconds = Math.round((this.#options.clock.now() - since) / 1000);
      this.#options.log("info", "Tables and indexes are migrated to the app's schema", { seconds });
    };
  }

  /** The isolate's whole life. Calls `onAnswer` with the result of the boot, and settles `ended` when everything is closed. */
  async #live(
    listener: Deno.Listener,
    { boot, held, fitted, onAnswer }: {
      readonly boot: () => Boot;
      /** Waits for what has to precede Boot. */
      readonly held: (() => Promise<void>) | null;
      /** Time to send `SchemaReady`. */
      readonly fitted: Promise<void> | null;
      readonly onAnswer: (result: StartResult) => void;
    },
  ): Promise<void> {
    const status = this.#options.child.status;
    const conn = await Promise.race([listener.accept(), status.then(() => null)]).catch(() => null);
    // Accepts exactly one connection.
    close(listener);
    this.#conn = conn;
    if (conn !== null) {
      this.#sender = new FrameSender(conn);
      if (held !== null) await Promise.race([held(), status]);
      this.send(boot());
      void fitted?.then(() => this.send({ type: "SchemaReady" }));
      await this.#readAll(conn, onAnswer);
      close(conn);
      // It has no purpose without its socket. If it lingers it is ended.
      if (!this.#isClosing) await this.#endSoon(status);
    }
    const { code, signal } = await status;
    await this.#stderr.ended;
    const death = this.#death(code, signal);
    this.#options.progress.close();
    onAnswer({ ok: false, broken: false, message: `The isolate ended while it started: ${death.detail}` });
    this.#ended.resolve(death);
  }

  async #readAll(conn: Deno.Conn, onAnswer: (result: StartResult) => void): Promise<void> {
    try {
      for await (const { message, segments, bytes } of readFrames<FromIsolate>(conn)) {
        switch (message.type) {
          case "Loaded": {
            const onLoaded = this.#onLoaded;
            if (onLoaded === null) throw new TypeError("Loaded came twice or was not expected");
            this.#onLoaded = null;
            onLoaded();
            break;
          }
          case "Ready":
            if (this.#ready !== null) throw new TypeError("Ready came twice");
            this.#ready = message;
            if (this.#options.rows === null) onAnswer({ ok: true, isolate: this });
            else void this.#beginWith(this.#options.rows, onAnswer);
            break;
          case "Broken":
            onAnswer({
              ok: false,
              broken: true,
              message: message.message,
              ...(message.code !== undefined && { code: message.code }),
            });
            break;
          case "AppendRow":
            void this.#appendRow(message, segments);
            break;
          default:
            if (this.#onFrame === null) throw new TypeError(`${message.type} came before its time`);
            this.#onFrame({ message, segments, ...(bytes && { bytes }) } satisfies WireFrame<typeof message>);
        }
      }
    } catch (error) {
      // The socket was closed by the host, or its other end died.
      if (
        this.#isClosing || error instanceof Deno.errors.BadResource ||
        error instanceof Deno.errors.ConnectionReset
      ) return;
      if (error instanceof Deno.errors.Interrupted) return;
      this.#violation = error instanceof Error ? error.message : String(error);
      kill(this.#options.child);
    }
  }

  /** A writer that lacks a row of the log of a cluster must not commit another in its place. */
  async #beginWith(rows: CommitAppender, onAnswer: (result: StartResult) => void): Promise<void> {
    const { reached } = this.ready;
    const refused = reached === undefined
      ? { message: "The writer did not report its history position" }
      : await rows.begins(reached);
    onAnswer(
      refused === null ? { ok: true, isolate: this } : { ok: false, broken: false, message: refused.message },
    );
  }

  async #appendRow({ row }: AppendRow, [body]: readonly string[]): Promise<void> {
    if (this.#options.rows === null || (row !== null && body === undefined)) {
      return this.end("it has no log to append rows to");
    }
    if (row === null || body === undefined) {
      return this.send({ type: "RowAppended", seq: null, refused: await this.#options.rows.append(null) });
    }
    const [seq, tsBefore, ts, at, sum] = row;
    const refused = await this.#options.rows.append({ seq, tsBefore, ts, at, sum, body });
    this.send({ type: "RowAppended", seq, refused });
  }

  async #endSoon(status: Promise<Deno.CommandStatus>): Promise<void> {
    const late = this.#options.clock.after(CLOSE_MS / 4, () => {
      this.#violation ??= "it closed its socket";
      kill(this.#options.child);
    });
    await status;
    late.cancel();
  }

  #death(code: number, signal: Deno.Signal | null): Death {
    const progress = this.progress();
    if (this.#violation !== null) return { cause: "crashed", detail: this.#violation, progress };
    if (this.#isClosing) return { cause: "asked", detail: "ended by the server", progress };
    if (signal === "SIGKILL") return { cause: "killed", detail: "killed from outside", progress };
    const summary = this.#options.authored(this.#stderr.summary);
    if (OUT_OF_MEMORY.test(this.#stderr.text)) {
      return { cause: "crashed", detail: "out of memory", progress };
    }
    const end = signal ?? `exit code ${code}`;
    return { cause: "crashed", detail: summary === "" ? end : `${end}: ${summary}`, progress };
  }

  #leave(sent: Promise<void> | undefined): void {
    // A broken socket belongs to an isolate that is ending, which `ended` reports.
    sent?.catch(() => {});
  }
}

/** Removes a file or folder, if it exists. */
export async function remove(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

function kill(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch {
    // Already ended.
  }
}

/** Closes a resource that the other end may have closed. */
export function close(resource: { close(): void } | null | undefined): void {
  try {
    resource?.close();
  } catch {
    // Already closed by the other end.
  }
}

function looksTooLong({ msMax }: CheckBounds): StartResult {
  const message = `Checking all documents took longer than ${msMax / 1000} s: there are too many of them, ` +
    "or a refinement in the schema does not end";
  return { ok: false, broken: true, message };
}
