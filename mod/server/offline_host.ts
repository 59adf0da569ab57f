/** Isolates for commands that read or write documents while no server runs. */
import { IsolateHost } from "../functions/host/mod.ts";
import type { Log } from "../kit/log.ts";
import { StartError } from "../config/start_error.ts";
import { isolateEntry } from "./isolate_address.ts";

export interface OfflineHostOptions {
  /** The caller holds its lock. */
  readonly dataDir: string;
  /** Functions of the app whose tables are created; an empty folder leaves the tables unchanged. */
  readonly functionsDir: string;
  readonly tableNumbers?: ReadonlyMap<string, number>;
  readonly log: Log;
}

/** Starts the isolates. Throws a `StartError` if the database cannot be opened or the app cannot be loaded. */
export async function startOfflineHost(
  { dataDir, functionsDir, tableNumbers, log }: OfflineHostOptions,
): Promise<IsolateHost> {
  try {
    return await IsolateHost.start({
      dataDir,
      code: { functionsDir },
      temporary: true,
      env: {},
      ...(tableNumbers && { tableNumbers: Object.fromEntries(tableNumbers) }),
      entry: isolateEntry,
      log,
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartError(`Cannot open the database of "${dataDir}": ${reason}`, {
      code: "data_folder",
      cause: error,
    });
  }
}
