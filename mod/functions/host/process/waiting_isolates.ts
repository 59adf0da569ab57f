/**
 * Isolates that were started before they are needed: whoever takes one is spared the start of a process. They are connected
 * and have not been told what they are, or have loaded the app and wait until the database fits it, or is theirs to write to.
 */
import { join } from "node:path";
import type { IsolateRole } from "../../wire/messages.ts";
import type { Version } from "../../versions/version_store.ts";
import type { StartResult } from "./isolate.ts";

/** What an isolate waits for that was started before it is needed. */
export interface BootGate {
  readonly connected: () => void;
  /** It has the app, and waits for the database. */
  readonly loaded: () => void;
  /** It is told what it is. */
  readonly opened: Promise<void>;
  /** The database fits a reader, or is given to a writer: what is loaded goes on to its answer. */
  readonly fitted: Promise<void>;
}

export interface WaitingIsolate {
  /** It can be told what it is, or has ended. */
  readonly connected: Promise<unknown>;
  /** It has loaded the app, or has ended. */
  readonly loaded: Promise<unknown>;
  /** Its answer to Boot. One that settles before it was taken is of no use. */
  readonly started: Promise<StartResult>;
  /** Whether it can load this version. */
  fits(version: Version): boolean;
  /** From now on it is for this version alone; `false` when that cannot be. */
  keepFor(version: Version): Promise<boolean>;
  /** Whether it is for this version alone. */
  isFor(version: Version): boolean;
  /** Has it load that version, as far as it can be loaded before the database fits. */
  open(): void;
  /** Has it go on to its answer. */
  goOn(): void;
  /** Ends it. */
  kill(): void;
}

/** One of each role. */
export class WaitingIsolates {
  readonly #byRole = new Map<IsolateRole, WaitingIsolate>();

  /** Ends the one that waited in this role before. */
  put(role: IsolateRole, isolate: WaitingIsolate): void {
    this.#byRole.get(role)?.kill();
    this.#byRole.set(role, isolate);
    void isolate.started.then(() => this.#drop(role, isolate));
  }

  /** The one that waits in this role and can load this version. */
  find(role: IsolateRole, version: Version): WaitingIsolate | null {
    const isolate = this.#byRole.get(role);
    return isolate?.fits(version) === true ? isolate : null;
  }

  /** The one that waits in this role for this version alone; from now on it waits for nobody else. */
  take(role: IsolateRole, version: Version): WaitingIsolate | null {
    const isolate = this.#byRole.get(role);
    if (isolate?.isFor(version) !== true) return null;
    this.#byRole.delete(role);
    return isolate;
  }

  /** Ends those of these that nobody has taken. */
  end(isolates: readonly WaitingIsolate[]): void {
    for (const [role, isolate] of this.#byRole) {
      if (!isolates.includes(isolate)) continue;
      this.#byRole.delete(role);
      isolate.kill();
    }
  }

  #drop(role: IsolateRole, isolate: WaitingIsolate): void {
    if (this.#byRole.get(role) === isolate) this.#byRole.delete(role);
  }
}

export interface WaitingOptions {
  readonly version: Version;
  /**
   * A folder in which the code is to be put: then any version can be loaded that has the same packages. `null`: this version
   * and no other.
   */
  readonly place: string | null;
  readonly launch: (
    version: Version,
    options: { readonly gate: BootGate; readonly onProcess: (process: { kill(): void }) => void },
  ) => Promise<StartResult>;
  /** Puts the code of a version into the folder, until that is disposed of. */
  readonly put: (version: Version, place: string) => Promise<Disposable>;
  /** It is gone, and so is what was in its folder. */
  readonly onGone: () => void;
}

/** Starts one. */
export function startWaiting({ version, place, launch, put, onGone }: WaitingOptions): WaitingIsolate {
  const connected = Promise.withResolvers<void>();
  const loaded = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  const fitted = Promise.withResolvers<void>();
  let process: { kill(): void } | null = null;
  let killed = false;
  const started = launch(place === null ? version : relocated(version, place), {
    gate: {
      connected: connected.resolve,
      loaded: loaded.resolve,
      opened: opened.promise,
      fitted: fitted.promise,
    },
    onProcess(known) {
      process = known;
      if (killed) known.kill();
    },
  });
  let loads = place === null ? version : null;
  let there: Promise<Disposable> | null = null;
  void started.then(async (result) => {
    if (result.ok) await result.isolate.ended;
    (await there?.catch(() => null))?.[Symbol.dispose]();
    onGone();
  });
  return {
    connected: Promise.race([connected.promise, started]),
    loaded: Promise.race([loaded.promise, started]),
    started,
    fits: (other) => loads === null ? sameOutside(version, other) : loads === other,
    isFor: (other) => loads === other,
    async keepFor(other) {
      if (loads === null && place !== null) there = put(other, place);
      loads = other;
      return await Promise.resolve(there).then(() => true, () => false);
    },
    open: () => opened.resolve(),
    goOn: () => fitted.resolve(),
    kill() {
      killed = true;
      process?.kill();
    },
  };
}

/** A version as it looks below another folder. */
function relocated(version: Version, folder: string): Version {
  return {
    ...version,
    folder,
    functionsDir: join(folder, version.functionsDir.slice(version.folder.length)),
  };
}

/** Whether what an isolate of the one was started with holds for the other: all but the app's own modules is the same. */
function sameOutside(one: Version, other: Version): boolean {
  const outside = ({ folder, functionsDir, authorFolder, code }: Version) =>
    JSON.stringify([functionsDir.slice(folder.length), authorFolder, code]);
  return outside(one) === outside(other);
}
