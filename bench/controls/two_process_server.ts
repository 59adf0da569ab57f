/**
 * The control for the way of a lone mutation: a WebSocket, a hop to a second process, the same transfer straight on SQLite
 * there, and back, with nothing else. It is what code that runs in a process of its own cannot do without.
 * Ends when its input ends. Arguments: the database's path and the number of accounts; a third one, the path of a
 * socket, is given to the second process.
 */
import { bareTransfers, type Transfer } from "./bare_transfers.ts";

const [path, accounts, socketPath] = Deno.args;
if (path === undefined || accounts === undefined) throw new TypeError("A path and a number are needed");

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const buffer = new Uint8Array(65_536);

interface Mutation {
  readonly type: string;
  readonly requestId: number;
  readonly args: Transfer;
}

/** The second process: one transfer for each message. */
async function runTransfers(path: string, socketPath: string): Promise<void> {
  const { transfer: run } = bareTransfers(path, Number(accounts));
  const conn = await Deno.connect({ transport: "unix", path: socketPath });
  for (let size = await conn.read(buffer); size !== null; size = await conn.read(buffer)) {
    const { requestId, args }: Mutation = JSON.parse(decoder.decode(buffer.subarray(0, size)));
    run(args);
    const answer = { type: "MutationResponse", requestId, success: true, result: null, ts: 1, logLines: [] };
    await conn.write(encoder.encode(JSON.stringify(answer)));
  }
}

/** The first process: one client, one message at a time. */
async function serve(path: string, accounts: string): Promise<void> {
  const socketPath = `${path}.socket`;
  const listener = Deno.listen({ transport: "unix", path: socketPath });
  const files = [path, `${path}-wal`, `${path}-shm`, `${path}-journal`, socketPath].join(",");
  const flags = [`--allow-net=unix:${socketPath}`, `--allow-read=${files}`, `--allow-write=${files}`];
  const child = new Deno.Command("deno", {
    args: ["run", "--no-prompt", ...flags, import.meta.url, path, accounts, socketPath],
  }).spawn();
  const conn = await listener.accept();
  let client = null as WebSocket | null;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const { socket, response } = Deno.upgradeWebSocket(request);
    client = socket;
    socket.onmessage = async ({ data }) => {
      if ((JSON.parse(data) as Mutation).type === "Mutation") await conn.write(encoder.encode(data));
    };
    return response;
  });
  await Deno.stdout.write(encoder.encode(`port ${server.addr.port}\n`));
  const answering = (async () => {
    for (let size = await conn.read(buffer); size !== null; size = await conn.read(buffer)) {
      client?.send(decoder.decode(buffer.subarray(0, size)));
    }
  })();
  for await (const _ of Deno.stdin.readable);
  conn.close();
  await Promise.allSettled([answering, child.status]);
}

if (socketPath === undefined) await serve(path, accounts);
else await runTransfers(path, socketPath);
Deno.exit(0);
