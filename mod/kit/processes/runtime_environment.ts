/**
 * Environment variables that tune the runtime of server processes. They are optional.
 *
 * `DENO_TOKIO_EVENT_INTERVAL`: by default the event loop polls sockets only after 61 ticks unless it is idle. A process
 * that busy-waits (adaptive_spinner.ts) then finds an answer up to 0.1 ms late. Polling in each tick costs a
 * microsecond, and less under load, where ticks are long and few. Without it a single mutation takes some 0.03 ms
 * longer.
 *
 * `MALLOC_*`: the C library keeps freed memory for each thread; after eight concurrent sign-ins the main process kept
 * 100 MB. With fixed thresholds large blocks (a password hash takes 19 MiB) return to the system at once, and two
 * arenas hold the rest.
 */
export const runtimeEnvironment: Readonly<Record<string, string>> = {
  DENO_TOKIO_EVENT_INTERVAL: "1",
  MALLOC_ARENA_MAX: "2",
  MALLOC_MMAP_THRESHOLD_: "4194304",
  MALLOC_TRIM_THRESHOLD_: "16777216",
};
