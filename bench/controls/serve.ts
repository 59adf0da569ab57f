/** Common part of the control servers. */
import { print } from "../support/print.ts";

/** Serves on a free port, prints the port, and ends the process when standard input ends. */
export async function serve(handler: (request: Request) => Response | Promise<Response>): Promise<never> {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, handler);
  print(`port ${server.addr.port}`);
  for await (const _ of Deno.stdin.readable);
  Deno.exit(0);
}
