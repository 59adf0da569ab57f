/** The target of scheduled backups: a folder or a bucket, with archives under names that contain their time. */
import { randomBytes } from "node:crypto";
import { dirname } from "node:path";
import { isDiskFull } from "../../../kit/durable_files.ts";
import {
  LocationError,
  type LocationFault,
  locationText,
  type ObjectLocation,
  type ObjectStore,
} from "../../../kit/locations/object_store.ts";
import { openStore } from "../../../kit/locations/open_store.ts";
import {
  allowedPaths,
  encodeJsonLine,
  HelperProcess,
  readJsonLines,
} from "../../../kit/processes/helper_process.ts";
import { entryModule } from "../../../kit/processes/program_root.ts";
import { opsLimits } from "../../limits.ts";
import { BackupError } from "../backup_error.ts";
import { downloadArchive } from "../stored_archives.ts";

/** The schedule counts and deletes only files with exactly such names. */
const NAME = /^scheduled-(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z-[0-9a-f]{8}\.tar\.zst$/;

/** A new name, `scheduled-<UTC time>-<random>.tar.zst`. */
export function scheduledName(now: Date): string {
  const time = now.toISOString().replaceAll(/[-:]|\.\d+/g, "");
  return `scheduled-${time}-${randomBytes(4).toString("hex")}.tar.zst`;
}

/** Returns the start time in a scheduled backup's name, in milliseconds since the epoch; `null` for other names. */
export function scheduledAt(name: string): number | null {
  const [, year, month, day, hours, minutes, seconds] = name.match(NAME) ?? [];
  if (year === undefined) return null;
  const iso = `${year}-${month}-${day}T${hours}:${minutes}:${seconds}.000Z`;
  const at = Date.parse(iso);
  // Reject dates such as February 30, which would roll over.
  return Number.isNaN(at) || new Date(at).toISOString() !== iso ? null : at;
}

/** Returns the time of the newest scheduled backup, or `null`. */
export function newestScheduled(names: Iterable<string>): number | null {
  let newest: number | null = null;
  for (const name of names) {
    const at = scheduledAt(name);
    if (at !== null && (newest === null || at > newest)) newest = at;
  }
  return newest;
}

/** Returns the oldest backups beyond `keep`, never the one just made: the clock may have been set back. */
export function expiredBackups(
  names: readonly string[],
  { keep, justMade }: { readonly keep: number; readonly justMade: string },
): string[] {
  const others = names.filter((name) => scheduledAt(name) !== null && name !== justMade);
  // The names sort in order of time.
  return others.sort().reverse().slice(Math.max(0, keep - 1));
}

const PREFIX = "scheduled-";

/** A method call on a target; `open` prepares the location. */
export type TargetCall =
  | { readonly call: "open" | "check" | "list" }
  | { readonly call: "put" | "fetch"; readonly name: string; readonly path: string }
  | { readonly call: "remove"; readonly name: string };

/** A call for a folder process: one line of JSON, as its answer. */
export type FolderJob = TargetCall & { readonly folder: string };

export type FolderAnswer =
  | { readonly ok: true; readonly names: readonly string[] }
  | {
    readonly ok: false;
    readonly message: string;
    readonly fault: LocationFault | null;
    readonly isDiskFull: boolean;
  };

export class BackupTarget implements AsyncDisposable {
  /** Display name. */
  readonly location: string;
  readonly #location: ObjectLocation;
  readonly #closing = new AbortController();
  #opened: Promise<ObjectStore> | null = null;

  /** A target that is opened by the first call. A failed attempt is repeated by the next call. */
  constructor(location: ObjectLocation) {
    this.location = locationText(location);
    this.#location = location;
  }

  /**
   * Creates a missing folder, tests whether backups can be listed and written, and aborts unfinished uploads of a killed
   * server. Throws a `LocationError`. An unreachable bucket is only reported in `unreachable`, because a server should start
   * anyway; the next backup reports the error again.
   */
  async open(): Promise<{ readonly unreachable: string | null }> {
    try {
      await this.#run({ call: "open" });
      return { unreachable: null };
    } catch (error) {
      const isAway = error instanceof LocationError && error.fault === "away";
      if (this.#location.kind === "bucket" && isAway) return { unreachable: error.message };
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Throws if backups cannot be stored at present. A missing folder is not created: its disk may not be mounted. */
  async check(): Promise<void> {
    await this.#run({ call: "check" });
  }

  /** Returns the names of the scheduled backups. */
  async list(): Promise<string[]> {
    return [...await this.#run({ call: "list" })];
  }

  /** Moves an archive to the target under a new name. */
  async put(name: string, path: string): Promise<void> {
    await this.#run({ call: "put", name, path });
  }

  /** Fetches a backup into a new local file. Returns whether it exists; throws, removing the file, if the transfer fails. */
  async fetch(name: string, path: string): Promise<boolean> {
    return scheduledAt(name) !== null && (await this.#run({ call: "fetch", name, path })).length > 0;
  }

  async remove(name: string): Promise<void> {
    await this.#run({ call: "remove", name });
  }

  /** Aborts calls in flight. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("The backup target is closed"));
    const store = await this.#opened?.catch(() => null);
    await store?.[Symbol.asyncDispose]();
  }

  async #run(call: TargetCall): Promise<readonly string[]> {
    const { signal } = this.#closing;
    signal.throwIfAborted();
    if (this.#location.kind === "folder" && !await hasAccess(this.#location.path)) {
      return await runInProcess({ ...call, folder: this.#location.path }, signal);
    }
    const opening = this.#opened ??= openStore(this.#location, {
      make: true,
      reserveBytes: opsLimits.diskReserveBytes,
      signal,
      partBytes: opsLimits.bucketPartBytes,
    });
    try {
      return await runTargetCall(await opening, call);
    } catch (error) {
      if (await opening.catch(() => null) === null && this.#opened === opening) this.#opened = null;
      throw error;
    }
  }
}

/** Returns names: those of `list`, or for `fetch` that of an existing backup. */
export async function runTargetCall(store: ObjectStore, call: TargetCall): Promise<readonly string[]> {
  switch (call.call) {
    case "open":
      await store.check();
      await store.removeUnfinished(PREFIX, {
        chosen: (name) => scheduledAt(name) !== null,
        ...(store.kind === "folder" && { before: Date.now() - opsLimits.partialKeptMs }),
      });
      return [];
    case "check":
      await store.check();
      return [];
    case "list": {
      const names: string[] = [];
      for await (const { name } of store.list(PREFIX)) if (scheduledAt(name) !== null) names.push(name);
      return names;
    }
    case "put":
      if (await store.head(call.name) !== null) {
        throw new BackupError(`"${call.name}" already exists in "${store.location}"`);
      }
      await store.putFile(call.name, call.path, { move: true });
      return [];
    case "fetch":
      return await downloadArchive(store, call) ? [call.name] : [];
    case "remove":
      await store.delete(call.name);
      return [];
    default:
      return call satisfies never;
  }
}

/** Whether this process may use a folder: not if it was configured at runtime. */
async function hasAccess(path: string): Promise<boolean> {
  const queries = (["read", "write"] as const).map((name) => Deno.permissions.query({ name, path }));
  return (await Promise.all(queries)).every(({ state }) => state === "granted");
}

/** Runs a call in a child process with access to only the folder. */
async function runInProcess(job: FolderJob, signal: AbortSignal): Promise<readonly string[]> {
  const allowed = allowedPaths([job.folder, ..."path" in job ? [dirname(job.path)] : []]);
  const child = new HelperProcess({
    entry: entryModule("mod/ops/backups/scheduled/folder_process.ts"),
    permissions: [`--allow-read=${allowed}`, `--allow-write=${allowed}`],
    dataMiB: opsLimits.maintenanceDataMiB,
    stderr: "inherit",
  });
  const kill = () => child.kill();
  signal.addEventListener("abort", kill, { once: true });
  const answers = readJsonLines(child.output, opsLimits.maintenanceLineCharsMax);
  try {
    // An exit is noticed by the end of its output.
    await child.input.write(encodeJsonLine(job)).catch(() => {});
    const { value } = await answers.next();
    if (value === undefined) throw new Error("The folder process exited before it had finished");
    const answer = JSON.parse(value) as FolderAnswer;
    if (answer.ok) return answer.names;
    const { fault, message } = answer;
    const error = fault === null ? new BackupError(message) : new LocationError(fault, message);
    throw answer.isDiskFull ? Object.assign(error, { code: "disk_full" }) : error;
  } finally {
    signal.removeEventListener("abort", kill);
    kill();
    await answers.return(undefined);
    await child.input.abort().catch(() => {});
    await child.status;
  }
}

export async function runFolderJob({ folder, ...call }: FolderJob): Promise<FolderAnswer> {
  try {
    // Only `open` creates the folder: otherwise its disk may not be mounted.
    await using store = await openStore({ kind: "folder", path: folder }, {
      make: call.call === "open",
      reserveBytes: opsLimits.diskReserveBytes,
    });
    return { ok: true, names: await runTargetCall(store, call) };
  } catch (error) {
    return {
      ok: false,
      message: error instanceof Error ? error.message : String(error),
      fault: error instanceof LocationError ? error.fault : null,
      isDiskFull: isDiskFull(error),
    };
  }
}
