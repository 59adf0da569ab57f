/** Files: uploads, downloads and small reads beside a bare server that pipes to and from a file; then thumbnails and memory. */
import { type BenchContext, storageFunctions } from "../context.ts";
import { sent, uploaded, uploadUrl } from "../support/file_uploads.ts";
import { RawGets } from "../support/raw_gets.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";
import { median } from "../support/statistics.ts";
import type { Row } from "../table.ts";
import { thumbnailRows } from "./thumbnails.ts";
import { uploadMemoryRow } from "./upload_memory.ts";

const MIB = 1024 * 1024;
const LARGE_BYTES = 100 * MIB;
const CONNECTIONS = 8;

export async function storageRows(context: BenchContext): Promise<Row[]> {
  const server = await context.server(storageFunctions);
  const control = `http://127.0.0.1:${await context.control("file_server")}`;
  const base = `http://127.0.0.1:${server.port}`;
  const rounds = context.full ? 10 : 4;
  const large = new Blob([new Uint8Array(LARGE_BYTES).fill(1)]);
  const times = {
    upload: [] as number[],
    uploadBare: [] as number[],
    download: [] as number[],
    bare: [] as number[],
  };
  for (let round = -1; round < rounds; round++) {
    const url = await uploadUrl(server);
    let id = "";
    const uploadMs = await timed(async () => id = await sent(url, large));
    const uploadBareMs = await timed(() => posted(control, large));
    await checkSize(server, id);
    const downloadMs = await timed(() => drained(`${base}/api/storage/${id}`));
    const downloadBareMs = await timed(() => drained(control));
    await server.call("mutation", "files:remove", { id });
    if (round < 0) continue;
    times.upload.push(uploadMs);
    times.uploadBare.push(uploadBareMs);
    times.download.push(downloadMs);
    times.bare.push(downloadBareMs);
  }
  const small = await smallReads(server, { control, count: context.full ? 20_000 : 5_000 });
  return [
    speedRow("upload of 100 MiB: MiB/s", { ours: times.upload, bare: times.uploadBare }),
    speedRow("download of 100 MiB: MiB/s", { ours: times.download, bare: times.bare }),
    small,
    ...await thumbnailRows(context),
    await uploadMemoryRow(context),
  ];
}

function speedRow(name: string, { ours, bare }: { ours: readonly number[]; bare: readonly number[] }): Row {
  const speed = (ms: number) => LARGE_BYTES / MIB / (ms / 1000);
  const [own, control] = [speed(median(ours)), speed(median(bare))];
  return {
    name,
    measured: `${own.toFixed(0)} MiB/s`,
    control: `${control.toFixed(0)} MiB/s piped to and from a file`,
    ratio: own / control,
    target: { atLeast: 0.7 },
    details: { oursMiBs: own, controlMiBs: control },
  };
}

async function smallReads(
  server: ServerProcess,
  { control, count }: { readonly control: string; readonly count: number },
): Promise<Row> {
  const storageId = await uploaded(server, new Uint8Array(1024).fill(1));
  const rates: { ours: number[]; bare: number[] } = { ours: [], bare: [] };
  for (let round = -1; round < 3; round++) {
    const ours = await RawGets.run({
      port: server.port,
      path: `/api/storage/${storageId}`,
      count,
      connections: CONNECTIONS,
    });
    const bare = await RawGets.run({
      port: Number(new URL(control).port),
      path: "/small",
      count,
      connections: CONNECTIONS,
    });
    if (round < 0) continue;
    rates.ours.push(ours);
    rates.bare.push(bare);
  }
  const [own, bare] = [median(rates.ours), median(rates.bare)];
  return {
    name: "reads of 1 KiB: requests/s",
    measured: `${own.toFixed(0)}/s`,
    control: `${bare.toFixed(0)}/s from memory`,
    ratio: own / bare,
    target: { atLeast: 0.5 },
    details: { oursPerSecond: own, controlPerSecond: bare },
  };
}

async function posted(url: string, body: Blob): Promise<void> {
  const response = await fetch(url, { method: "POST", body });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text}`);
}

async function checkSize(server: ServerProcess, id: string): Promise<void> {
  const metadata = await server.call("query", "files:metadata", { id }) as { size: number } | null;
  if (metadata?.size !== LARGE_BYTES) throw new Error(`The upload has ${metadata?.size} bytes`);
}

async function drained(url: string): Promise<void> {
  const response = await fetch(url);
  let bytes = 0;
  for await (const chunk of response.body ?? []) bytes += chunk.length;
  if (bytes !== LARGE_BYTES) throw new Error(`${url} gave ${bytes} bytes`);
}

async function timed(run: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await run();
  return performance.now() - startedAt;
}
