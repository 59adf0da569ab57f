/**
 * Whether a data folder belongs to the bundled example or to an app. The example is served when no app is found, possibly by
 * mistake: on the data of an app, it would add its tables.
 */
import { join } from "node:path";
import { StartError } from "../../config/start_error.ts";
import { removeIfThere, statIfThere, writeDurably } from "../../kit/durable_files.ts";
import { archiveNames } from "../../ops/backups/archive/entry_names.ts";

/** Marks a data folder of the bundled example. */
const EXAMPLE_MARK = "example";

export interface DataOwner {
  /** Whether the bundled example is about to use the data. */
  readonly example: boolean;
  /** Whether a restore has just replaced the data. */
  readonly restored?: boolean;
}

/** Call with the lock held, before the database is opened. Throws a `StartError` if the example would use an app's data. */
export async function claimData(dataDir: string, { example, restored = false }: DataOwner): Promise<void> {
  const mark = join(dataDir, EXAMPLE_MARK);
  if (restored || !example) await removeIfThere(mark);
  if (!example) return;
  const known = !restored && await statIfThere(mark) !== null;
  if (known) return;
  if (await statIfThere(join(dataDir, archiveNames.database)) !== null) {
    throw new StartError(
      `The data in "${dataDir}" belongs to an app, but there is no folder "functions" here. Pass the app's folder with ` +
        "--functions, or another folder with --data for the bundled example",
      { code: "app_not_loaded" },
    );
  }
  await writeDurably(mark, "The data in this folder belongs to the bundled example.\n");
}
