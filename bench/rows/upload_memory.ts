/** Memory of all processes of a server while many large files are uploaded at once. */
import { type BenchContext, pause, storageFunctions } from "../context.ts";
import { processTree, proportionalSetSize } from "../../tests/support/processes/process_tree.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";
import type { Row } from "../table.ts";

const MIB = 1024 * 1024;
const UPLOADS = 50;
const SETTLE_MS = 2_000;
const LOOK_MS = 100;

export async function uploadMemoryRow(context: BenchContext): Promise<Row> {
  const bytes = (context.full ? 100 : 10) * MIB;
  const server = await context.server(storageFunctions);
  // The isolates and the code of uploads are loaded before.
  await upload(server, 1024);
  await pause(SETTLE_MS);
  const idle = await memoryOf(server);
  let over = false;
  const peak = (async () => {
    let most = 0;
    while (!over) {
      most = Math.max(most, await memoryOf(server));
      await pause(LOOK_MS);
    }
    return most;
  })();
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: UPLOADS }, () => upload(server, bytes)));
  const seconds = (performance.now() - startedAt) / 1000;
  over = true;
  const most = await peak;
  return {
    name: `memory, ${UPLOADS} uploads of ${bytes / MIB} MiB at once: MB more`,
    measured: `${(most / 1e6).toFixed(1)} MB`,
    control: `${(idle / 1e6).toFixed(1)} MB idle`,
    ratio: (most - idle) / 1e6,
    target: { atMost: 150 },
    details: { idle, most, seconds, mibPerSecond: UPLOADS * bytes / MIB / seconds },
  };
}

async function memoryOf(server: ServerProcess): Promise<number> {
  const pids = await processTree(server.pid);
  const sizes = await Promise.all(pids.map(proportionalSetSize));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Over a plain connection, so that the buffers of the client cost nothing. */
async function upload(server: ServerProcess, bytes: number): Promise<void> {
  const path = await server.call("mutation", "files:generate");
  using conn = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  const head =
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: ${bytes}\r\n\r\n`;
  await sendAll(conn, new TextEncoder().encode(head));
  for (let sent = 0; sent < bytes; sent += piece.length) await sendAll(conn, piece.subarray(0, bytes - sent));
  const answer = await new Response(conn.readable).text();
  if (!answer.startsWith("HTTP/1.1 200")) throw new Error(answer);
}

const piece = crypto.getRandomValues(new Uint8Array(65_536));

async function sendAll(conn: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await conn.write(bytes.subarray(sent));
}
