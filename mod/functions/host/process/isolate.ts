/** Interface of an isolate and its starter. Implemented with child processes in `process_starter.ts` and `isolate_process.ts`. */
import type { WireFrame } from "../../wire/segment_frames.ts";
import type { Progress } from "../../wire/progress_file.ts";
import type { Version } from "../../versions/version_store.ts";
import type { BootAnswer, CheckBounds, FromIsolate, IsolateRole, ToIsolate } from "../../wire/messages.ts";

export type IsolateFrame = WireFrame<Exclude<FromIsolate, BootAnswer>>;

export type Ready = Extract<BootAnswer, { type: "Ready" }>;

/** Why an isolate ended: by the host, from outside (no call's fault), or by its code or a protocol violation. */
export type DeathCause = "asked" | "killed" | "crashed";

export interface Death {
  readonly cause: DeathCause;
  /** For the log and the responsible caller: `out of memory`, `exit code 3`. */
  readonly detail: string;
  /** The call it was running. */
  readonly progress: Progress | null;
}

/** A running isolate that has answered Boot. */
export interface Isolate {
  readonly ready: Ready;
  /** Settles once, after all of its frames were received. Never rejects. */
  readonly ended: Promise<Death>;
  /** Sets the receiver of its frames. An error thrown by the receiver counts as a protocol error and ends the isolate. */
  receive(onFrame: (frame: IsolateFrame) => void): void;
  /** Sends a frame. Frames are dropped if the isolate has ended or is about to. */
  send(message: ToIsolate, segments?: readonly string[]): void;
  /** Sends bytes of a call's body, like {@linkcode send}. */
  sendBytes(call: number, bytes: Uint8Array): void;
  /** Like {@linkcode send}, for a serialized frame. */
  sendText(text: string): void;
  /** Reads its progress file. */
  progress(): Progress | null;
  kill(): void;
  /** Closes it gracefully, for a bounded time. Resolves when it is gone. */
  close(): Promise<void>;
}

/** `broken`: the app cannot be loaded or does not match the data. Otherwise the isolate could not be started. */
export type StartResult =
  | { readonly ok: true; readonly isolate: Isolate }
  | { readonly ok: false; readonly broken: boolean; readonly message: string; readonly code?: "disk_full" };

export interface IsolateStarter {
  /** Starts an isolate and waits for its answer to Boot, for a bounded time. Never rejects. */
  start(role: IsolateRole, version?: Version): Promise<StartResult>;
  use?(version: Version): void;
  /** Prestarts an isolate for the next `start` of this role. Never rejects. */
  warm?(role: IsolateRole): Promise<void>;
  /** Prestarts a writer and a reader; disposing the result ends unused ones. Never rejects. */
  prepare?(version: Version): Promise<Disposable>;
  /** Prestarts a writer and a reader for the next version. */
  standBy?(): void;
  /** Sets the environment of runners. */
  useEnv?(env: Readonly<Record<string, string>>): void;
  /** Starts a reader with a query that is not part of the app, in JavaScript. Never rejects. */
  startAdHoc?(version: Version, code: string): Promise<StartResult>;
  /** Starts a reader that only checks this version against the data. Never rejects. */
  check?(version: Version, bounds: CheckBounds): Promise<StartResult>;
  /** Ends all isolates but a writer that is ready, and waits for their end. Later starts fail. */
  endOthers?(): Promise<void>;
}
