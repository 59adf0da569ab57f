/** `--dev`: reloads edited functions and checks their types in the background. */
import { updateGeneratedModule } from "../../functions/generated_module.ts";
import type { Log } from "../../kit/log.ts";
import { devLimits } from "../limits.ts";
import { withFullPaths } from "./error_report.ts";
import type { TypeCheckResult } from "./type_check.ts";
import type { FolderEdits } from "./folder_edits.ts";

/** Outcome of loading edited functions. With `ok: false`, the old code stays in use. */
export type ReloadResult = { readonly ok: true } | { readonly ok: false; readonly message: string };

/** Edited files named in a message. */
const NAMES_MAX = 3;

export interface DevModeOptions {
  readonly functionsDir: string;
  /** The mode ends when this watch ends. */
  readonly edits: FolderEdits;
  readonly log: Log;
  readonly reload: () => Promise<ReloadResult>;
  /** Prepares the next reload. */
  readonly standBy: () => void;
  readonly checkTypes: (folder: string, signal: AbortSignal) => Promise<TypeCheckResult | null>;
}

/** Resolves after the watch of the folder was ended. A broken edit is logged and the old code stays in use. */
export async function runDevMode(
  { functionsDir, edits, log, reload, standBy, checkTypes }: DevModeOptions,
): Promise<void> {
  let check = new AbortController();
  let checked: Promise<void> = Promise.resolve();
  const startCheck = () => {
    check = new AbortController();
    checked = reportTypes(checkTypes(functionsDir, check.signal), log);
  };
  const standByLater = setTimeout(standBy, devLimits.standByAfterMs);
  startCheck();
  try {
    for (let files = await edits.next(); files !== null; files = await edits.next()) {
      clearTimeout(standByLater);
      // The check concerns outdated code; the edit is served first.
      check.abort();
      await updateGeneratedModule(functionsDir, log);
      const result = await reload();
      if (result.ok) log("info", "Functions reloaded", { edited: named(files) });
      else {
        const message = withFullPaths(result.message, functionsDir);
        log("error", `Cannot load the edit of ${named(files)}; the previous code stays in use:\n${message}`, {
          code: "app_not_loaded",
        });
      }
      standBy();
      startCheck();
    }
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
    log("warn", "Cannot check the types", { error });
  }
}

/** The first names of a list. */
function named(files: readonly string[]): string {
  const [shown, more] = [files.slice(0, NAMES_MAX), files.length - NAMES_MAX];
  return shown.join(", ") + (more > 0 ? ` and ${more} more` : "");
}
