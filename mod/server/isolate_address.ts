/** The module that isolates of a server begin with. */
import { programRoot } from "../kit/processes/program_root.ts";

export const isolateEntry: URL = new URL("mod/server/isolate_entry.ts", programRoot);
