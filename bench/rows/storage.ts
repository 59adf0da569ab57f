/** Uploads, downloads and small reads of files beside a bare server, thumbnails, and the memory of uploads. */
import { type BenchContext, type Control, storageFunctions } from "../context.ts";
import { createUploadUrl, uploadFile, uploadTo } from "../support/files.ts";
import { alternate } from "../support/rounds.ts";
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
  const control = await context.control("file_server");
  return [
    ...await largeFileRows(context, server, control),
    await smallReadRow(context, server, control),
    ...await thumbnailRows(context),
    await uploadMemoryRow(context),
  ];
}

interface TransferTimes {
  readonly uploadMs: number;
  readonly downloadMs: number;
}

async function largeFileRows(context: BenchContext, server: ServerProcess, control: Control): Promise<Row[]> {
  const body = new Blob([new Uint8Array(LARGE_BYTES).fill(1)]);
  const controlUrl = `http://127.0.0.1:${control.port}`;
  const times = await alternate<"ours" | "control", TransferTimes>(context.full ? 10 : 4, {
    ours: async () => {
      const url = await createUploadUrl(server);
      let id = "";
      const uploadMs = await msOf(async () => id = await uploadTo(url, body));
      const downloadMs = await msOf(() => download(`http://127.0.0.1:${server.port}/api/storage/${id}`));
      await server.call("mutation", "files:remove", { id });
      return { uploadMs, downloadMs };
    },
    control: async () => ({
      uploadMs: await msOf(() => post(controlUrl, body)),
      downloadMs: await msOf(() => download(controlUrl)),
    }),
  });
  const row = (name: string, time: keyof TransferTimes): Row => {
    const speed = (side: keyof typeof times) =>
      LARGE_BYTES / MIB / (median(times[side].map((each) => each[time])) / 1000);
    return {
      name,
      measured: `${speed("ours").toFixed(0)} MiB/s`,
      control: `${speed("control").toFixed(0)} MiB/s piped to and from a file`,
      ratio: speed("ours") / speed("control"),
      target: { atLeast: 0.7 },
      details: { ours: speed("ours"), control: speed("control") },
    };
  };
  return [row("upload of 100 MiB: MiB/s", "uploadMs"), row("download of 100 MiB: MiB/s", "downloadMs")];
}

async function smallReadRow(context: BenchContext, server: ServerProcess, control: Control): Promise<Row> {
  const load = context.load();
  const count = context.full ? 20_000 : 5_000;
  const id = await uploadFile(server, new Uint8Array(1024).fill(1));
  const get = (port: number, path: string) => () =>
    load.run("rawGets", { port, path, count, connections: CONNECTIONS });
  const rates = await alternate(3, {
    ours: get(server.port, `/api/storage/${id}`),
    control: get(control.port, "/small"),
  });
  const [ours, bare] = [median(rates.ours), median(rates.control)];
  return {
    name: "reads of 1 KiB: requests/s",
    measured: `${ours.toFixed(0)}/s`,
    control: `${bare.toFixed(0)}/s from memory`,
    ratio: ours / bare,
    target: { atLeast: 0.5 },
    details: rates,
  };
}

async function post(url: string, body: Blob): Promise<void> {
  const response = await fetch(url, { method: "POST", body });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text}`);
}

async function download(url: string): Promise<void> {
  const response = await fetch(url);
  let bytes = 0;
  for await (const chunk of response.body ?? []) bytes += chunk.length;
  if (bytes !== LARGE_BYTES) throw new Error(`${url} returned ${bytes} bytes`);
}

async function msOf(run: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await run();
  return performance.now() - startedAt;
}
