/**
 * The control for durable writes: the same transfer straight on SQLite, one transaction each. `POST /api/mutation` runs one
 * transfer, `POST /commits` with `{count}` measures that many in the process itself. Ends when its input ends.
 * Arguments: the database's path and the number of accounts.
 */
import { bareTransfers } from "./bare_transfers.ts";

const [path, accounts] = Deno.args;
if (path === undefined || accounts === undefined) throw new TypeError("A path and a number are needed");

const transfer = bareTransfers(path, Number(accounts));

/** Milliseconds of each of `count` transfers. */
function measure(count: number): number[] {
  const durations: number[] = [];
  for (let i = 0; i < count; i++) {
    const from = Math.floor(Math.random() * Number(accounts));
    const startedAt = performance.now();
    transfer({ from_id: from, to_id: (from + 1) % Number(accounts), amount: 1 });
    durations.push(performance.now() - startedAt);
  }
  return durations;
}

const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
  const body = await request.json();
  if (new URL(request.url).pathname === "/commits") return Response.json(measure(body.count));
  transfer(body.args);
  return Response.json({ status: "success", value: null, logLines: [] });
});

await Deno.stdout.write(new TextEncoder().encode(`port ${server.addr.port}\n`));
for await (const _ of Deno.stdin.readable);
Deno.exit(0);
