/** The command `backup`: writes a consistent snapshot of a data folder to an archive, whether or not a server runs. */
import { helpFields } from "../explained.ts";
import { EngineError } from "../engine/mod.ts";
import { statIfThere } from "../kit/durable_files.ts";
import { ArchiveError, type ArchiveManifest } from "../ops/backups/archive/mod.ts";
import { BackupError, type BackupSummary, createBackup } from "../ops/backups/mod.ts";
import { type CommandSpec, exitCodes } from "./command_line.ts";
import { commandLog } from "../kit/command_log.ts";
import { ConsoleProgress } from "./console_progress.ts";
import { DataLock } from "../server/data/data_lock.ts";
import type { OptionValues } from "../config/options.ts";
import { StopSignals } from "../server/signals.ts";
import { StartError } from "../config/start_error.ts";

export const backupCommand: CommandSpec = {
  name: "backup",
  description: "Back up the data to an archive; the server can keep running",
  run,
};

type BackupCommandOptions = Pick<OptionValues, "data" | "out" | "withAux" | "withFiles" | "includeSecret">;

async function run(options: BackupCommandOptions): Promise<number> {
  const { data: dataDir, withAux, withFiles, includeSecret } = options;
  const log = commandLog();
  const out = options.out ?? `./backup-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, "")}.tar.zst`;
  const stopping = new AbortController();
  using signals = new StopSignals();
  void signals.first.then((signal) =>
    stopping.abort(new StartError(`Stopped by ${signal}: no backup was made`, { code: "backup" }))
  );
  try {
    await finishRestore(dataDir);
    const { signal } = stopping;
    const onWait = () => log("info", `Waiting for another backup of "${dataDir}" to finish`);
    using progress = new ConsoleProgress();
    const summary = await createBackup({ dataDir, out, withAux, withFiles, includeSecret }, {
      ...{ signal, onWait },
      onProgress: (step) => progress.show(step),
      lockDataFolder: () => DataLock.acquireIfFree(dataDir, { by: "backup" }),
    });
    progress[Symbol.dispose]();
    await Deno.stdout.write(new TextEncoder().encode(report(summary, options)));
    return exitCodes.ok;
  } catch (error) {
    const isExpected = [StartError, BackupError, ArchiveError, EngineError].some((kind) =>
      error instanceof kind
    );
    if (!isExpected || !(error instanceof Error)) throw error;
    log("error", error.message, helpFields(error));
    return exitCodes.failed;
  }
}

/** Finishes an interrupted restore, which acquiring the lock does. */
async function finishRestore(dataDir: string): Promise<void> {
  if (await statIfThere(dataDir) !== null) {
    (await DataLock.acquireIfFree(dataDir, { by: "backup" }))?.[Symbol.dispose]();
  }
}

const NAMES: Readonly<Record<ArchiveManifest["parts"][number], string>> = {
  database: "the database",
  log: "the execution log",
  files: "the uploaded files",
  secret: "the secret key",
};

function report(summary: BackupSummary, { withAux, includeSecret }: BackupCommandOptions): string {
  const { path, bytes, ts, createdAt, parts, missingFiles } = summary;
  const lines = [
    `Backed up ${parts.map((part) => NAMES[part]).join(", ")} as of ts ${ts}, ${createdAt}`,
    `${path}, ${bytes} bytes`,
  ];
  if (withAux && !parts.includes("log")) lines.push("This data folder has no execution log.");
  if (missingFiles > 0) {
    lines.push(
      `Not included: ${missingFiles} uploaded file${
        missingFiles === 1 ? "" : "s"
      } whose contents are not in the data ` +
        "folder. Files in a bucket need a separate backup.",
    );
  }
  if (includeSecret) {
    lines.push(
      "It contains the secret key: anyone who has this file can sign in as any user. Restrict access to it.",
    );
  }
  return `${lines.join("\n")}\n`;
}
