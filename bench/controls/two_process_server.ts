/**
 * Control for a single mutation: a WebSocket message crosses to a second process, which runs the transfer on SQLite, and the
 * response returns the same way. This is the minimum for a server that runs functions in a separate process.
 * Arguments: path of the database, number of accounts. The second process gets the path of a socket as third argument.
 */
import { openBareTransfers, type Transfer } from "./bare_transfers.ts";
import { serve } from "./serve.ts";

const [path = "", accounts = "0", socketPath] = Deno.args;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

interface Mutation {
  readonly type: string;
  readonly requestId: number;
  readonly args: Transfer;
}

/** Calls back with each message. One client sends one message at a time, so each read returns a whole message. */
async function readMessages(conn: Deno.UnixConn, onMessage: (text: string) => unknown): Promise<void> {
  const buffer = new Uint8Array(65_536);
  for (let size = await conn.read(buffer); size !== null; size = await conn.read(buffer)) {
    await onMessage(decoder.decode(buffer.subarray(0, size)));
  }
}

/** Runs in the second process. */
async function runTransfers(socketPath: string): Promise<void> {
  const { transfer } = openBareTransfers(path, Number(accounts));
  const conn = await Deno.connect({ transport: "unix", path: socketPath });
  await readMessages(conn, async (text) => {
    const { requestId, args }: Mutation = JSON.parse(text);
    transfer(args);
    const answer = { type: "MutationResponse", requestId, success: true, result: null, ts: 1, logLines: [] };
    await conn.write(encoder.encode(JSON.stringify(answer)));
  });
  Deno.exit(0);
}

/** Runs in the first process. The second one ends when the connection is closed. */
async function forwardMessages(): Promise<void> {
  const socketPath = `${path}.socket`;
  const listener = Deno.listen({ transport: "unix", path: socketPath });
  const files = [path, `${path}-wal`, `${path}-shm`, `${path}-journal`, socketPath].join(",");
  const flags = [`--allow-net=unix:${socketPath}`, `--allow-read=${files}`, `--allow-write=${files}`];
  new Deno.Command("deno", {
    args: ["run", "--no-prompt", ...flags, import.meta.url, path, accounts, socketPath],
  }).spawn();
  const conn = await listener.accept();
  let client = null as WebSocket | null;
  void readMessages(conn, (text) => client?.send(text));
  await serve((request) => {
    const { socket, response } = Deno.upgradeWebSocket(request);
    client = socket;
    socket.onmessage = async ({ data }) => {
      if ((JSON.parse(data) as Mutation).type === "Mutation") await conn.write(encoder.encode(data));
    };
    return response;
  });
}

if (socketPath === undefined) await forwardMessages();
else await runTransfers(socketPath);
