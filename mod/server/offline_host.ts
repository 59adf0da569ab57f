/** The isolates on a data folder while no server runs, for commands that work with its documents. */
import { IsolateHost } from "../functions/host/mod.ts";
import type { Log } from "../kit/log.ts";
import { StartError } from "../config/start_error.ts";
import { isolateEntry } from "./isolate_address.ts";

export interface OfflineHostOptions {
  /** Its lock is the caller's. */
  readonly dataDir: string;
  /** Of the app whose tables the database gets; an empty folder leaves them as they are. */
  readonly functionsDir: string;
  /** Numbers that tables get which the database does not have yet. */
  readonly tableNumbers?: ReadonlyMap<string, number>;
  readonly log: Log;
}

/** Starts the isolates. Throws a `StartError` when the database cannot be opened or the app cannot be loaded. */
export async function startOfflineHost(
  { dataDir, functionsDir, tableNumbers, log }: OfflineHostOptions,
): Promise<IsolateHost> {
  try {
    return await IsolateHost.start({
      dataDir,
      code: { functionsDir },
      passing: true,
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
