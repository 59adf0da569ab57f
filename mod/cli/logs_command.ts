/** The command `logs`: prints the execution log of a data folder, whether or not a server runs. It only reads the file. */
import { join, resolve } from "node:path";
import { styleText } from "node:util";
import type { OptionValues } from "../config/options.ts";
import { ServiceError } from "../errors.ts";
import { helpFields } from "../explained.ts";
import { statIfThere } from "../kit/durable_files.ts";
import { archiveNames } from "../ops/backups/archive/entry_names.ts";
import { LogFile, UnusableLogError } from "../ops/log/log_file.ts";
import type { LoggedRun } from "../ops/log/mod.ts";
import { StopSignals } from "../server/signals.ts";
import { type CommandSpec, exitCodes } from "./command_line.ts";
import { commandLog } from "../kit/command_log.ts";

/** Characters of a version's hash that are printed, as by `deploy` and `rollback`. */
const HASH_CHARS = 12;

/** Returns one line for the run, followed by its error and log lines, indented. `colors`: failed runs are red. */
export function runText(run: LoggedRun, { colors = false } = {}): string {
  const { at, kind, outcome, durationMs, caller, requestId, version, error, logLines } = run;
  const head = `${new Date(at).toISOString()} ${kind.padEnd(8)} ${run.function} ${outcome} ${durationMs} ms` +
    ` ${caller ?? "anonymous"} request=${requestId}` +
    (version === null ? "" : ` version=${version.slice(0, HASH_CHARS)}`);
  const lines = error === null ? logLines : [error.message, error.stack ?? "", ...logLines];
  const text = [
    head,
    ...lines.filter((line) => line !== "").flatMap((line) => line.split("\n")).map((line) => `    ${line}`),
  ].map(visible).join("\n");
  return colors && outcome !== "success" ? styleText("red", text, { validateStream: false }) : text;
}

/** Escapes control characters. */
function visible(line: string): string {
  return line.replaceAll(/\p{Cc}/gu, "?");
}

export const logsCommand: CommandSpec = {
  name: "logs",
  description: "Print the newest function runs from the execution log; the server can keep running",
  run,
};

type LogsCommandOptions = Pick<
  OptionValues,
  "data" | "tail" | "last" | "only" | "outcome" | "level" | "text" | "request" | "codeVersion" | "system"
>;

/** Poll interval for new runs. */
const POLL_MS = 500;

async function run(options: LogsCommandOptions): Promise<number> {
  const log = commandLog();
  const path = join(options.data, archiveNames.log);
  if (await statIfThere(path) === null) {
    log(
      "error",
      `Folder "${
        resolve(options.data)
      }" contains no execution log: pass the server's data folder with --data`,
      { code: "data_folder" },
    );
    return exitCodes.failed;
  }
  try {
    using file = LogFile.open(path, parametersOf(options));
    await print(file.newest(options.last).map(shown));
    if (options.tail) await follow(file);
    return exitCodes.ok;
  } catch (error) {
    if (error instanceof ServiceError) {
      log("error", error.message, helpFields(error));
      return exitCodes.usage;
    }
    if (!(error instanceof UnusableLogError)) throw error;
    log("error", error.message, helpFields(error));
    return exitCodes.failed;
  }
}

function shown(run: LoggedRun): string {
  return runText(run, { colors: Deno.stdout.isTerminal() && !Deno.noColor });
}

/** Builds the filter in the format of the log endpoint. Named functions and requests include those of the service. */
export function parametersOf(
  { only, outcome, level, text, request, codeVersion, system }: Omit<
    LogsCommandOptions,
    "data" | "tail" | "last"
  >,
): URLSearchParams {
  const ownOnly = !system && only === null && request === null;
  const given = {
    ...{ function: only, outcome, level, text, request, version: codeVersion },
    system: ownOnly ? "false" : null,
  };
  return new URLSearchParams(
    Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== null),
  );
}

/** Prints new runs until a signal arrives. */
async function follow(file: LogFile): Promise<void> {
  using signals = new StopSignals();
  let stopped = false;
  void signals.first.then(() => stopped = true);
  while (!stopped) {
    const { runs, missed } = file.more();
    await print(runs.map(shown));
    if (missed) await print(["… some runs are omitted: too many at once"]);
    await Promise.race([signals.first, new Promise((resolve) => setTimeout(resolve, POLL_MS))]);
  }
}

async function print(texts: readonly string[]): Promise<void> {
  if (texts.length === 0) return;
  const bytes = new TextEncoder().encode(`${texts.join("\n")}\n`);
  for (let sent = 0; sent < bytes.length;) sent += await Deno.stdout.write(bytes.subarray(sent));
}
