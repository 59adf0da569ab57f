/** What the host sees of one isolate, and how it gets one. `isolate_process.ts` implements it with child processes. */
import type { WireFrame } from "../../wire/segment_frames.ts";
import type { Progress } from "../../wire/progress_file.ts";
import type { Version } from "../../versions/version_store.ts";
import type { BootAnswer, CheckBounds, FromIsolate, IsolateRole, ToIsolate } from "../../wire/messages.ts";

/** A frame of an isolate after its boot. */
export type IsolateFrame = WireFrame<Exclude<FromIsolate, BootAnswer>>;

/** An isolate's word that it serves. */
export type Ready = Extract<BootAnswer, { type: "Ready" }>;

/**
 * Why an isolate ended. `asked`: the host ended it. `killed`: somebody else did (SIGKILL, as the kernel does when memory
 * runs out), which is no call's fault. `crashed`: what ran in it brought it down, or it spoke nonsense.
 */
export type DeathCause = "asked" | "killed" | "crashed";

export interface Death {
  readonly cause: DeathCause;
  /** For the log and for the caller whose call did it: `out of memory`, `exit code 3`. */
  readonly detail: string;
  /** What it was running when it ended. */
  readonly progress: Progress | null;
}

/** A running isolate that has answered its boot. */
export interface Isolate {
  readonly ready: Ready;
  /** Settles once, after every frame it sent has been received. Never rejects. */
  readonly ended: Promise<Death>;
  /** Names the receiver of its frames. An error thrown by the receiver counts as nonsense and ends the isolate. */
  receive(onFrame: (frame: IsolateFrame) => void): void;
  /** A frame that cannot leave is lost; the isolate has ended then, or is about to. */
  send(message: ToIsolate, segments?: readonly string[]): void;
  /** Sends bytes of a call's body; they are lost like the frames of {@linkcode send}. */
  sendBytes(call: number, bytes: Uint8Array): void;
  /** Like {@linkcode send}, for a frame whose text is made already. */
  sendText(text: string): void;
  /** What it is running now, as it noted itself. */
  progress(): Progress | null;
  /** Ends it at once. */
  kill(): void;
  /** Lets it end by itself, for a bounded time; resolves when it is gone. */
  close(): Promise<void>;
}

/** `broken`: the app cannot be loaded or does not fit the data. Otherwise the isolate itself could not be started. */
export type StartResult =
  | { readonly ok: true; readonly isolate: Isolate }
  | { readonly ok: false; readonly broken: boolean; readonly message: string };

export interface IsolateStarter {
  /**
   * Starts an isolate and waits for its answer to Boot, for a bounded time. It loads the version in use, or the one that is
   * given. Never rejects.
   */
  start(role: IsolateRole, version?: Version): Promise<StartResult>;
  /** From now on isolates load this version. */
  use?(version: Version): void;
  /**
   * Starts an isolate that does nothing yet: the next `start` of this role gets it. With `loads` it goes on and loads the app,
   * where that can be done before the database is its own. Never rejects.
   */
  warm?(role: IsolateRole, options?: { readonly loads?: boolean }): Promise<void>;
  /**
   * Has a writer and a reader of this version begin, so that the next `start` of each is over sooner. What is given ends
   * those that nobody took. Never rejects.
   */
  prepare?(version: Version): Promise<Disposable>;
  /** Has a writer and a reader stand by for the version after this one. */
  standBy?(): void;
  /** From now on runners see these variables. */
  useEnv?(env: Readonly<Record<string, string>>): void;
  /** Starts a reader of this version that looks whether it fits the data, and serves nobody. Never rejects. */
  check?(version: Version, bounds: CheckBounds): Promise<StartResult>;
}
