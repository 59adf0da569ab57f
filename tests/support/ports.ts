/**
 * Ports for servers that a test starts later, or several times. They are below the ranges from which systems choose ports for
 * outgoing connections and for port 0, so that nothing takes them in between.
 */
const FIRST = 10_000;
const BLOCKS = 100;
const BLOCK_PORTS = 200;

/**
 * Concurrent test processes use different blocks of ports: a server that restarts does not listen for a moment. A process
 * listens on the first port of its block until it ends, which reserves the block.
 */
const block = reserveBlock();

let next = 0;

function reserveBlock(): Deno.TcpListener {
  for (let n = 0; n < BLOCKS; n++) {
    const listener = listenIfFree(FIRST + (Deno.pid + n) % BLOCKS * BLOCK_PORTS);
    if (listener !== null) return listener;
  }
  throw new Error("No block of ports is free");
}

/** Returns `null` if the port is in use. */
function listenIfFree(port: number): Deno.TcpListener | null {
  try {
    return Deno.listen({ hostname: "127.0.0.1", port });
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse) return null;
    throw error;
  }
}

/** Returns a port of 127.0.0.1 that is free and that this process has not used recently. */
export function freePort(): number {
  for (let tries = 1; tries < BLOCK_PORTS; tries++) {
    const port = block.addr.port + 1 + next++ % (BLOCK_PORTS - 1);
    const listener = listenIfFree(port);
    if (listener === null) continue;
    listener.close();
    return port;
  }
  throw new Error("No port is free");
}
