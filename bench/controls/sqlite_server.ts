/**
 * The control for durable writes: the same transfer straight on SQLite, one transaction each. `POST /api/mutation` runs one
 * transfer, as each message of a WebSocket does, or inserts a post behind its rule, `POST /api/query` reads a balance, `POST /commits` with `{count}` measures
 * that many transfers in the process itself. Ends when its input ends. Arguments: the database's path and the number of
 * accounts.
 */
import { bareTransfers } from "./bare_transfers.ts";

const [path, accounts] = Deno.args;
if (path === undefined || accounts === undefined) throw new TypeError("A path and a number are needed");

const { transfer, balanceOf, post } = bareTransfers(path, Number(accounts));

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

function serveSocket(request: Request): Response {
  const { socket, response } = Deno.upgradeWebSocket(request);
  socket.onmessage = ({ data }) => {
    const { type, requestId, args } = JSON.parse(data);
    if (type !== "Mutation") return;
    transfer(args);
    socket.send(JSON.stringify({ type: "MutationResponse", requestId, success: true, result: null }));
  };
  return response;
}

const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
  if (request.headers.get("upgrade") === "websocket") return serveSocket(request);
  const body = await request.json();
  const { pathname } = new URL(request.url);
  if (pathname === "/commits") return Response.json(measure(body.count));
  const value = pathname === "/api/query"
    ? balanceOf(body.args.id)
    : body.path === "rooms:post"
    ? post(body.args)
    : transfer(body.args) ?? null;
  return Response.json({ status: "success", value, logLines: [] });
});

await Deno.stdout.write(new TextEncoder().encode(`port ${server.addr.port}\n`));
for await (const _ of Deno.stdin.readable);
Deno.exit(0);
