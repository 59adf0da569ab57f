/**
 * Ports for servers that a test starts later, or several times. They are below the ranges from which systems choose ports for
 * outgoing connections and for port 0, so that nothing takes them in between.
 */
const FIRST = 10_000;
const COUNT = 20_000;
/** Concurrent test processes start at different ports. */
const PORTS_OF_PROCESS = 50;

let next = Deno.pid * PORTS_OF_PROCESS;

/** Returns a port of 127.0.0.1 that is free and that this process has not used recently. */
export function freePort(): number {
  for (let tries = 0; tries < COUNT; tries++) {
    const port = FIRST + next++ % COUNT;
    try {
      Deno.listen({ hostname: "127.0.0.1", port }).close();
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
  throw new Error("No port is free");
}
