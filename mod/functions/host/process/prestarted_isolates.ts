/** Prestarted isolates: connected without role data, or with the app loaded and waiting for the database. */
import type { IsolateRole } from "../../wire/messages.ts";
import type { Version } from "../../versions/version_store.ts";
import type { StartResult } from "./isolate.ts";

export interface BootGate {
  readonly connected: () => void;
  /** The app is loaded. It waits for the database. */
  readonly loaded: () => void;
  readonly opened: Promise<void>;
  /** Lets it open the database and answer Boot. */
  readonly fitted: Promise<void>;
}

export interface WaitingIsolate {
  /** Settles when it is connected or has ended. */
  readonly connected: Promise<unknown>;
  /** Settles when it has loaded the app or has ended. */
  readonly loaded: Promise<unknown>;
  /** Its answer to Boot. If it settles before the isolate is used, the isolate is of no use. */
  readonly started: Promise<StartResult>;
  canLoad(version: Version): boolean;
  /** Reserves it for this version. Returns `false` if that is not possible. */
  keepFor(version: Version): Promise<boolean>;
  isFor(version: Version): boolean;
  /** Loads that version, as far as possible before the database is migrated. */
  open(): void;
  /** Lets it continue to its answer. */
  proceed(): void;
  /** Ends it. */
  kill(): void;
}

/** At most one per role. */
export class PrestartedIsolates {
  readonly #byRole = new Map<IsolateRole, WaitingIsolate>();

  /** Replaces and ends the previous one of this role. */
  put(role: IsolateRole, isolate: WaitingIsolate): void {
    this.#byRole.get(role)?.kill();
    this.#byRole.set(role, isolate);
    void isolate.started.then(() => this.#drop(role, isolate));
  }

  find(role: IsolateRole, version: Version): WaitingIsolate | null {
    const isolate = this.#byRole.get(role);
    return isolate?.canLoad(version) === true ? isolate : null;
  }

  take(role: IsolateRole, version: Version): WaitingIsolate | null {
    const isolate = this.#byRole.get(role);
    if (isolate?.isFor(version) !== true) return null;
    this.#byRole.delete(role);
    return isolate;
  }

  /** Ends those that were not used. */
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
  /** File in which its code is put, so that it can load any version of the same project. `null`: this version only. */
  readonly place: string | null;
  readonly launch: (
    version: Version,
    options: { readonly gate: BootGate; readonly onProcess: (process: { kill(): void }) => void },
  ) => Promise<StartResult>;
  /** Links the code of a version there, until disposed. */
  readonly put: (version: Version, place: string) => Promise<Disposable>;
  readonly onExit: () => void;
}

export function startWaiting({ version, place, launch, put, onExit }: WaitingOptions): WaitingIsolate {
  const connected = Promise.withResolvers<void>();
  const loaded = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  const fitted = Promise.withResolvers<void>();
  let process: { kill(): void } | null = null;
  let killed = false;
  const started = launch(place === null ? version : { ...version, bundle: place }, {
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
    onExit();
  });
  return {
    connected: Promise.race([connected.promise, started]),
    loaded: Promise.race([loaded.promise, started]),
    started,
    canLoad: (other) => loads === null ? sameOutside(version, other) : loads === other,
    isFor: (other) => loads === other,
    async keepFor(other) {
      if (loads === null && place !== null) there = put(other, place);
      loads = other;
      return await Promise.resolve(there).then(() => true, () => false);
    },
    open: () => opened.resolve(),
    proceed: () => fitted.resolve(),
    kill() {
      killed = true;
      process?.kill();
    },
  };
}

/** Whether start parameters of one are valid for the other. */
function sameOutside(one: Version, other: Version): boolean {
  return one.functions === other.functions && one.authorFolder === other.authorFolder;
}
