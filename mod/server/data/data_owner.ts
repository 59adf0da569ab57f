/**
 * Whose data a folder holds: those of the bundled example, or an app's. The example is served when no app is named, which may
 * be a slip: on the data of an app it would put its tables beside theirs.
 */
import { join } from "node:path";
import { StartError } from "../../config/start_error.ts";
import { removeIfThere, statIfThere, writeDurably } from "../../kit/durable_files.ts";
import { archiveNames } from "../../ops/backups/archive/entry_names.ts";

/** Stands in a data folder that the example has made. */
const EXAMPLE_MARK = "example";

export interface DataOwner {
  /** Whether it is the bundled example that is about to use the data. */
  readonly example: boolean;
  /** Whether a restore has just put other data there. */
  readonly restored?: boolean;
}

/** To be called by whoever holds the folder, before its database is opened. Throws a `StartError` for data of an app. */
export async function claimData(dataDir: string, { example, restored = false }: DataOwner): Promise<void> {
  const mark = join(dataDir, EXAMPLE_MARK);
  if (restored || !example) await removeIfThere(mark);
  if (!example) return;
  const known = !restored && await statIfThere(mark) !== null;
  if (known) return;
  if (await statIfThere(join(dataDir, archiveNames.database)) !== null) {
    throw new StartError(
      `The data in "${dataDir}" are those of an app, and there is no folder "functions" here: name the app's with ` +
        "--functions, or another folder with --data for the bundled example",
      { code: "app_not_loaded" },
    );
  }
  await writeDurably(mark, "The data in this folder are those of the bundled example.\n");
}
