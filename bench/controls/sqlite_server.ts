/**
 * Control for durable writes: the operations of the benchmark directly on SQLite, each in its own transaction.
 * `POST /api/mutation` and WebSocket messages run transfers, or `rooms:post` over HTTP. `POST /api/query` reads a balance.
 * `POST /commits` with `{count}` measures transfers inside the process.
 * Arguments: path of the database, number of accounts.
 */
import { openBareTransfers } from "./bare_transfers.ts";
import { serve } from "./serve.ts";

const [path = "", accounts = "0"] = Deno.args;
const { transfer, balanceOf, post } = openBareTransfers(path, Number(accounts));

/** Returns the durations of `count` transfers in milliseconds. */
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

await serve(async (request) => {
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
