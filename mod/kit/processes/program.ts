/** The running program: its configuration, the environment of its processes, and the memory of the machine. */
import { totalmem } from "node:os";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { programRoot } from "./program_root.ts";

/** Returns the Deno configuration of the server's processes; in a clone `deno.serve.json`, with fewer packages. */
export function programConfig(): string {
  const serving = fileURLToPath(new URL("deno.serve.json", programRoot));
  return isThere(serving) ? serving : fileURLToPath(new URL("deno.json", programRoot));
}

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

/**
 * Environment variables that tune the runtime of server processes. They are optional. In the npm package and the
 * single-file server, values of the environment take precedence for the main process. `deno task` and the generated unit
 * set these values. Workers and other helper processes always get them.
 *
 * `DENO_TOKIO_EVENT_INTERVAL`: by default the event loop polls sockets only after 61 ticks unless it is idle. A process
 * that busy-waits (adaptive_spinner.ts) then finds an answer up to 0.1 ms late. Polling in each tick costs a
 * microsecond, and less under load, where ticks are long and few. Without it a single mutation takes some 0.03 ms
 * longer.
 *
 * `MALLOC_*`: the C library keeps freed memory for each thread; after eight concurrent sign-ins the main process kept
 * 100 MB. With fixed thresholds large blocks (a password hash takes 19 MiB) return to the system at once, and two
 * arenas hold the rest.
 *
 * `DENO_V8_FLAGS`: by default the space for new objects grows to 64 MiB, and V8 fills it before it collects. With half of
 * it main takes 80 MB less under load and the same processor time. Isolates have flags of their own.
 */
export const runtimeEnvironment: Readonly<Record<string, string>> = {
  DENO_TOKIO_EVENT_INTERVAL: "1",
  MALLOC_ARENA_MAX: "2",
  MALLOC_MMAP_THRESHOLD_: "4194304",
  MALLOC_TRIM_THRESHOLD_: "16777216",
  DENO_V8_FLAGS: "--max-semi-space-size=16",
};

/** Assumed if the system does not report its memory. */
const UNKNOWN_BYTES = 1024 ** 3;

/** Returns the memory of the machine, or of the process's control group if that is less. */
export function machineMemoryBytes(): number {
  const known = [() => process.constrainedMemory(), () => totalmem()].map((ask) => {
    try {
      return ask();
    } catch {
      return 0;
    }
  }).filter((bytes) => bytes > 0);
  return known.length === 0 ? UNKNOWN_BYTES : Math.min(...known);
}
