/** Entry module of a server's isolates. */
import { programRoot } from "../kit/processes/program_root.ts";

export const isolateEntry: URL = new URL("mod/server/isolate_entry.ts", programRoot);
