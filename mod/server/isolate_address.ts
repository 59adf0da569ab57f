/** Entry module of a server's isolates. */
import { entryModule } from "../kit/processes/program_root.ts";

export const isolateEntry: URL = entryModule("mod/server/isolate_entry.ts");
