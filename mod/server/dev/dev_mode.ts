/** `--dev`: edited functions are loaded at once and type-checked in the background. */
import type { Log } from "../../kit/log.ts";
import type { ReloadResult } from "./reload_result.ts";
import { devLimits } from "../limits.ts";
import { withWholePaths } from "./author_report.ts";
import type { TypeCheckResult } from "./type_check.ts";
import { watchFolder } from "./watch_folder.ts";

export interface DevModeOptions {
  readonly functionsDir: string;
  readonly log: Log;
  /** Ends the watch. */
  readonly signal: AbortSignal;
  readonly reload: () => Promise<ReloadResult>;
  /** Gets ready for the next reload. */
  readonly standBy: () => void;
  readonly checkTypes: (folder: string, signal: AbortSignal) => Promise<TypeCheckResult | null>;
}

/** Resolves when `signal` ends it. A broken edit is told of and the old code goes on serving. */
export async function runDevMode(
  { functionsDir, log, signal, reload, standBy, checkTypes }: DevModeOptions,
): Promise<void> {
  let check = new AbortController();
  let checked: Promise<void> = Promise.resolve();
  const startCheck = () => {
    check.abort();
    check = new AbortController();
    checked = reportTypes(checkTypes(functionsDir, AbortSignal.any([check.signal, signal])), log);
  };
  const standByLater = setTimeout(standBy, devLimits.standByAfterMs);
  startCheck();
  try {
    await watchFolder(functionsDir, {
      signal,
      onEdit: async () => {
        clearTimeout(standByLater);
        // Of code that is no more; the edit is to be served first.
        check.abort();
        const result = await reload();
        if (result.ok) log("info", "Functions reloaded");
        else {
          const message = withWholePaths(result.message, functionsDir);
          log("error", `The edit is not served, the code before it still is:\n${message}`, {
            code: "app_not_loaded",
          });
        }
        standBy();
        startCheck();
      },
    });
  } finally {
    clearTimeout(standByLater);
    check.abort();
    await checked;
  }
}

async function reportTypes(check: Promise<TypeCheckResult | null>, log: Log): Promise<void> {
  try {
    const result = await check;
    if (result?.ok === false) {
      log("warn", `The type check found errors:\n${result.report}`, { code: "app_not_loaded" });
    }
  } catch (error) {
    log("warn", "The types could not be checked", { error });
  }
}
