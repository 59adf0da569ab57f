/**
 * What the runtime is told from outside when a process of the server is started. A server that is started without it works
 * as well.
 *
 * Its event loop takes turns with the kernel: by default it asks only after 61 turns of its own whether a socket has
 * something to read, unless it has nothing else to do. A process that waits awake (wakefulness.ts) then finds an answer up
 * to 0.1 ms late; asked in each turn, which takes a microsecond, it is there at once. Under load nothing is lost: turns are
 * long then, and few. Without it a lone mutation takes some 0.03 ms longer.
 *
 * The C library keeps what was freed, for each of the runtime's threads apart, and the more the larger it was: after eight
 * sign-ins at once main held 100 MB of it for good. With fixed bounds what is large (a password's hash takes 19 MiB) goes
 * back to the system at once, and two arenas hold the rest.
 */
export const runtimeEnvironment: Readonly<Record<string, string>> = {
  DENO_TOKIO_EVENT_INTERVAL: "1",
  MALLOC_ARENA_MAX: "2",
  MALLOC_MMAP_THRESHOLD_: "4194304",
  MALLOC_TRIM_THRESHOLD_: "16777216",
};
