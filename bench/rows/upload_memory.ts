/** Memory of all processes of a server during many concurrent uploads. */
import { type BenchContext, storageFunctions } from "../context.ts";
import { pause } from "../../tests/support/waiting.ts";
import { peakMemoryDuring, treeMemory } from "../support/cost.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";
import type { Row } from "../table.ts";

const MIB = 1024 * 1024;
const UPLOADS = 50;
const SETTLE_MS = 2_000;

export async function uploadMemoryRow(context: BenchContext): Promise<Row> {
  const bytes = (context.full ? 100 : 10) * MIB;
  const server = await context.server(storageFunctions);
  // Starts the isolates and loads the code.
  await upload(server, 1024);
  await pause(SETTLE_MS);
  const idle = (await treeMemory(server.pid)).bytes;
  const peak = (await peakMemoryDuring(
    server.pid,
    () => Promise.all(Array.from({ length: UPLOADS }, () => upload(server, bytes))),
  )).bytes;
  return {
    name: `memory, ${UPLOADS} concurrent uploads of ${bytes / MIB} MiB: additional MB`,
    measured: `${(peak / 1e6).toFixed(1)} MB`,
    control: `${(idle / 1e6).toFixed(1)} MB idle`,
    ratio: (peak - idle) / 1e6,
    target: { atMost: 150 },
    details: { idle, peak },
  };
}

const chunk = crypto.getRandomValues(new Uint8Array(65_536));

/** Uploads over plain TCP, which needs no buffers in this process. */
async function upload(server: ServerProcess, bytes: number): Promise<void> {
  const path = await server.call("mutation", "files:generate");
  using conn = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  const head =
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: ${bytes}\r\n\r\n`;
  await writeAll(conn, new TextEncoder().encode(head));
  for (let sent = 0; sent < bytes; sent += chunk.length) {
    await writeAll(conn, chunk.subarray(0, bytes - sent));
  }
  const answer = await new Response(conn.readable).text();
  if (!answer.startsWith("HTTP/1.1 200")) throw new Error(answer);
}

async function writeAll(conn: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await conn.write(bytes.subarray(sent));
}
