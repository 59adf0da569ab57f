/** The command `doctor`: checks the integrity of a data folder, whether or not a server runs. It writes nothing to it. */
import type { OptionValues } from "../config/options.ts";
import { statIfThere, writeAll } from "../kit/durable_files.ts";
import { diagnose, type Finding, overall } from "../ops/doctor/mod.ts";
import { newestReplacedDatabase } from "../server/data/data_restore.ts";
import { storageLimits } from "../storage/limits.ts";
import { ConsoleProgress, type ConsoleProgressOptions } from "./console_progress.ts";
import { type CommandSpec, exitCodes } from "./command_line.ts";
import { commandLog } from "../kit/command_log.ts";

export const doctorCommand: CommandSpec = {
  name: "doctor",
  description:
    "Check a data folder: integrity, indexes, files, log, disk space, clock; the server can keep running",
  run: (options) => runDoctor(options, (text) => writeAll(Deno.stdout, new TextEncoder().encode(text))),
};

type DoctorCommandOptions = Pick<OptionValues, "data" | "json" | "storage">;

/** Returns exit code 1 for errors; warnings do not count. */
export async function runDoctor(
  { data, json, storage }: DoctorCommandOptions,
  print: (text: string) => Promise<void>,
  terminal: ConsoleProgressOptions = {},
): Promise<number> {
  if ((await statIfThere(data))?.isDirectory !== true) {
    commandLog()(
      "error",
      `Data folder "${data}" does not exist: pass the server's data folder with --data`,
    );
    return exitCodes.failed;
  }
  const checks: Finding[] = [];
  using progress = new ConsoleProgress(terminal);
  const found = diagnose({
    dataDir: data,
    filesElsewhere: storage !== null,
    orphanAgeMs: storageLimits.orphanAgeMs,
    replacedAt: await newestReplacedDatabase(data),
    now: Date.now,
    onProgress: (at) => progress.show(at),
  });
  for await (const finding of found) {
    // A line of its own, behind what was shown.
    progress[Symbol.dispose]();
    checks.push(finding);
    if (!json) await print(`${finding.status.padEnd(4)}  ${finding.check.padEnd(9)}  ${finding.message}\n`);
  }
  const status = overall(checks);
  if (json) await print(`${JSON.stringify({ status, checks })}\n`);
  return status === "fail" ? exitCodes.failed : exitCodes.ok;
}
