/** The command `replica verify`: reads and checks a whole replica and rebuilds its newest state. */
import { helpFields } from "../explained.ts";
import { OptionValueError } from "../config/option_types.ts";
import { parseBackupTarget } from "../config/options.ts";
import { StartError } from "../config/start_error.ts";
import { type CommandSpec, exitCodes } from "./command_line.ts";
import { commandLog } from "../kit/command_log.ts";
import { ConsoleProgress, showPoint } from "./console_progress.ts";

export const replicaVerifyCommand: CommandSpec = {
  name: "replica verify",
  description: "Check all files of a replica and rebuild its newest state in a temporary folder",
  argument: { name: "replica", description: "A folder, or s3://bucket/prefix" },
  async run(options, argument) {
    const log = commandLog();
    const { withReplica } = await import("./replica_restore.ts");
    const { verifyReplica } = await import("../ops/replication/mod.ts");
    const folder = await Deno.makeTempDir({ prefix: "syncline-verify-" });
    try {
      using progress = new ConsoleProgress();
      const report = await withReplica(
        options,
        parseBackupTarget(argument),
        (target) => verifyReplica(target, { folder, onProgress: (step) => showPoint(progress, step) }),
      );
      progress[Symbol.dispose]();
      const { generations, snapshots, segments, rows, bytes, faults, rebuilt } = report;
      for (const fault of faults) log("error", fault);
      const read =
        `${generations} generations, ${snapshots} snapshots, ${segments} segments with ${rows} rows, ${bytes} bytes`;
      const state = rebuilt === null
        ? "no state could be rebuilt"
        : `the state of ts ${rebuilt.ts} with ${rebuilt.documents} documents was rebuilt in ${rebuilt.seconds} s`;
      await Deno.stdout.write(
        new TextEncoder().encode(`${faults.length === 0 ? "Sound" : "Damaged"}: ${read}; ${state}.\n`),
      );
      return faults.length === 0 ? exitCodes.ok : exitCodes.failed;
    } catch (error) {
      if (error instanceof OptionValueError) {
        log("error", `Invalid replica: ${error.message}`, { code: "replication" });
        return exitCodes.usage;
      }
      if (!(error instanceof StartError)) throw error;
      log("error", error.message, helpFields(error));
      return exitCodes.failed;
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
};
