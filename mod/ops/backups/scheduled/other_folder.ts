/**
 * Backup target for a folder that the main process cannot access because it was configured at runtime: a child process with
 * access to only that folder is started for each job.
 */
import { dirname } from "node:path";
import { allowedPaths, HelperProcess } from "../../../kit/processes/helper_process.ts";
import { encodeJsonLine, readJsonLines } from "../../../kit/processes/json_lines.ts";
import { programRoot } from "../../../kit/processes/program_root.ts";
import { opsLimits } from "../../limits.ts";
import { BackupError } from "../backup_error.ts";
import type { BackupTarget } from "./backup_target.ts";
import type { FolderAnswer, FolderJob } from "./folder_messages.ts";
import { BackupFolderTarget } from "./folder_target.ts";

/** Queries and mutations take precedence. */
const NICENESS = 19;

type Call = FolderJob extends infer Job ? Job extends FolderJob ? Omit<Job, "folder"> : never : never;

/** Opens a folder as target, with or without access of this process. Throws if it is not writable. */
export async function openFolder(
  path: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<BackupTarget> {
  const states = await Promise.all(
    (["read", "write"] as const).map((name) => Deno.permissions.query({ name, path })),
  );
  if (states.every(({ state }) => state === "granted")) {
    return await BackupFolderTarget.open(path, { signal });
  }
  return await IsolatedFolderTarget.open(path, signal);
}

class IsolatedFolderTarget implements BackupTarget {
  readonly place: string;
  readonly #signal: AbortSignal;

  private constructor(place: string, signal: AbortSignal) {
    this.place = place;
    this.#signal = signal;
  }

  static async open(path: string, signal: AbortSignal): Promise<IsolatedFolderTarget> {
    const folder = new IsolatedFolderTarget(path, signal);
    await folder.#run({ call: "open" });
    return folder;
  }

  async check(): Promise<void> {
    await this.#run({ call: "check" });
  }

  async list(): Promise<string[]> {
    return [...await this.#run({ call: "list" })];
  }

  async put(name: string, path: string): Promise<void> {
    await this.#run({ call: "put", name, path });
  }

  async fetch(name: string, path: string): Promise<boolean> {
    return (await this.#run({ call: "bring", name, path })).length > 0;
  }

  async remove(name: string): Promise<void> {
    await this.#run({ call: "remove", name });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }

  async #run(call: Call): Promise<readonly string[]> {
    this.#signal.throwIfAborted();
    const folders = [this.place, ..."path" in call ? [dirname(call.path)] : []];
    const allowed = allowedPaths(folders);
    const child = new HelperProcess({
      entry: new URL("mod/ops/backups/scheduled/folder_process.ts", programRoot),
      permissions: [`--allow-read=${allowed}`, `--allow-write=${allowed}`],
      dataMiB: opsLimits.maintenanceDataMiB,
      niceness: NICENESS,
      stderr: "inherit",
    });
    const kill = () => child.kill();
    this.#signal.addEventListener("abort", kill, { once: true });
    try {
      const said = await answerOf(child, { ...call, folder: this.place } as FolderJob);
      if (said.ok) return said.names;
      throw said.told ? new BackupError(said.message) : new Error(said.message);
    } finally {
      this.#signal.removeEventListener("abort", kill);
      kill();
      await child.input.abort().catch(() => {});
      await child.status;
    }
  }
}

async function answerOf(child: HelperProcess, job: FolderJob): Promise<FolderAnswer> {
  const answers = readJsonLines(child.output, opsLimits.maintenanceLineCharsMax);
  try {
    // An exit is noticed by the end of its output.
    await child.input.write(encodeJsonLine(job)).catch(() => {});
    const { value } = await answers.next();
    if (value === undefined) throw new Error("The folder process exited before it had finished");
    return JSON.parse(value) as FolderAnswer;
  } finally {
    await answers.return(undefined);
  }
}
