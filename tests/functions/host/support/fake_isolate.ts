/** Isolates in memory, controlled by a test. */
import type {
  Death,
  DeathCause,
  Isolate,
  IsolateFrame,
  IsolateStarter,
  Ready,
  StartResult,
} from "../../../../mod/functions/host/process/isolate.ts";
import { frameText, parseFrameText } from "../../../../mod/functions/wire/segment_frames.ts";
import type { Progress } from "../../../../mod/functions/wire/progress_file.ts";
import type { FromIsolate, IsolateRole, ToIsolate } from "../../../../mod/functions/wire/messages.ts";

export class FakeIsolate implements Isolate {
  readonly role: IsolateRole;
  readonly ready: Ready;
  /** Messages of the host, oldest first. */
  readonly sent: Exclude<ToIsolate, { type: "Boot" }>[] = [];
  /** Parts of bodies, in order. */
  readonly sentBytes: { readonly call: number; readonly bytes: Uint8Array }[] = [];
  /** The contents of its progress file. */
  noted: Progress | null = null;
  /** Called with each message of the host, for fakes that live by themselves. */
  onSent: ((message: FakeIsolate["sent"][number]) => void) | null = null;
  dead = false;
  readonly #ended = Promise.withResolvers<Death>();
  #onFrame: ((frame: IsolateFrame) => void) | null = null;

  constructor(role: IsolateRole, ready: Ready) {
    this.role = role;
    this.ready = ready;
  }

  get ended(): Promise<Death> {
    return this.#ended.promise;
  }

  /** The newest message of the host of this type. */
  last<Type extends FakeIsolate["sent"][number]["type"]>(type: Type) {
    const message = this.sent.findLast((message) => message.type === type);
    if (message === undefined) throw new Error(`No ${type} was sent`);
    return message as Extract<FakeIsolate["sent"][number], { type: Type }>;
  }

  receive(onFrame: (frame: IsolateFrame) => void): void {
    this.#onFrame = onFrame;
  }

  send(message: ToIsolate, segments: readonly string[] = []): void {
    this.sendText(frameText(message, segments));
  }

  sendBytes(call: number, bytes: Uint8Array): void {
    this.sentBytes.push({ call, bytes: bytes.slice() });
  }

  sendText(text: string): void {
    const { message } = parseFrameText<FakeIsolate["sent"][number]>(text);
    this.sent.push(message);
    if (!this.dead) this.onSent?.(message);
  }

  /** Sends the host a message. Like a real isolate, it is ended by an invalid message. */
  sends(message: FromIsolate, segments: readonly string[] = []): void {
    if (this.dead) return;
    try {
      this.#onFrame?.({ message: message as IsolateFrame["message"], segments });
    } catch (error) {
      this.dies("crashed", error instanceof Error ? error.message : String(error));
    }
  }

  progress(): Progress | null {
    return this.noted;
  }

  dies(cause: DeathCause, detail: string = cause): void {
    this.dead = true;
    this.#ended.resolve({ cause, detail, progress: this.noted });
  }

  kill(): void {
    this.dies("asked");
  }

  async close(): Promise<void> {
    this.kill();
    await this.ended;
  }
}

export class FakeStarter implements IsolateStarter, AsyncDisposable {
  /** All that were started, oldest first. */
  readonly isolates: FakeIsolate[] = [];
  /** The state of the database for the next isolates. */
  ts = 0;
  lastGroup: string | null = null;
  functions: Ready["functions"] = [];
  /** The history position of the next writers, if they follow another server. */
  reached: Ready["reached"];
  /** Why the next ones are broken, if they are. */
  broken: string | null = null;
  /** The next ones are not ready before this has settled. */
  delay: Promise<void> = Promise.resolve();
  /** Called with each new isolate before the host gets it. */
  onStart: ((isolate: FakeIsolate) => void) | null = null;
  /** Requested starts, successful or not. */
  starts = 0;
  disposed = false;

  async start(role: IsolateRole): Promise<StartResult> {
    this.starts++;
    await this.delay;
    if (this.broken !== null) return { ok: false, broken: true, message: this.broken };
    const lastGroup = role === "writer" ? this.lastGroup : null;
    const ready: Ready = {
      type: "Ready",
      functions: this.functions,
      ts: this.ts,
      lastGroup,
      ...(role === "writer" && this.reached && { reached: this.reached }),
    };
    const isolate = new FakeIsolate(role, ready);
    this.isolates.push(isolate);
    this.onStart?.(isolate);
    return { ok: true, isolate };
  }

  /** The newest isolate of a role. */
  newest(role: IsolateRole): FakeIsolate {
    const isolate = this.isolates.findLast((isolate) => isolate.role === role);
    if (isolate === undefined) throw new Error(`No ${role} was started`);
    return isolate;
  }

  of(role: IsolateRole): FakeIsolate[] {
    return this.isolates.filter((isolate) => isolate.role === role);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.disposed = true;
    for (const isolate of this.isolates) isolate.kill();
    return Promise.resolve();
  }
}
