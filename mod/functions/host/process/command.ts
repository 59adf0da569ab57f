/** The command line of an isolate: flags, environment and limits. */
import { type LimitedCommand, limitedCommand } from "../../../kit/processes/helper_process.ts";
import { entryModule } from "../../../kit/processes/program_root.ts";
import { usualMemory } from "./isolate_memory.ts";
import { isolateLimits } from "../../limits.ts";
import { heapFlags, type IsolatePaths, startArguments } from "./start_flags.ts";

/** Entry module of an isolate without functions of the service. */
export const plainEntry: URL = entryModule("mod/functions/isolate/main.ts");

export function isolateCommand(paths: IsolatePaths): LimitedCommand {
  const own = startArguments(paths);
  const { dataMiB } = paths.memory ?? usualMemory;
  const niceness = paths.role === "runner" ? isolateLimits.runnerNiceness : 0;
  const { executable, args, env } = limitedCommand(dataMiB, own, { niceness });
  return { executable, args, env: { ...env, DENO_V8_FLAGS: heapFlags(paths.role, paths.memory) } };
}
