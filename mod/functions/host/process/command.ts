/** The command line of an isolate: flags, environment and limits. */
import {
  BACKGROUND_NICENESS,
  type LimitedCommand,
  limitedCommand,
} from "../../../kit/processes/helper_process.ts";
import { entryModule } from "../../../kit/processes/program_root.ts";
import { usualMemory } from "./isolate_memory.ts";
import { heapFlags, type IsolatePaths, startArguments } from "./start_flags.ts";

/** Entry module of an isolate without functions of the service. */
export const plainEntry: URL = entryModule("mod/functions/isolate/main.ts");

export function isolateCommand(paths: IsolatePaths): LimitedCommand {
  const own = startArguments(paths);
  const { dataMiB } = paths.memory ?? usualMemory;
  // Several runners may start at once and would compete with queries for the processors.
  const niceness = paths.role === "runner" ? BACKGROUND_NICENESS : 0;
  const { executable, args, env } = limitedCommand(dataMiB, own, { niceness });
  return { executable, args, env: { ...env, DENO_V8_FLAGS: heapFlags(paths.role, paths.memory) } };
}
