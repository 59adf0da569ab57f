/** Thumbnails beside plain sharp in a loop, and what calls feel of them. */
import { type BenchContext, storageFunctions } from "../context.ts";
import { uploaded } from "../support/file_uploads.ts";
import type { LoadProcess } from "../support/load_process.ts";
import { TestPhotos } from "../support/test_photos.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";
import { median, percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const PHOTOGRAPHS = 12;
const IN_PROGRESS = 30;
const EDGE = 500;

export async function thumbnailRows(context: BenchContext): Promise<Row[]> {
  await using photographs = await TestPhotos.make(context.folder(), PHOTOGRAPHS);
  // More files than one client may upload: the requests name several clients.
  const server = await context.serverWith(["--trusted-proxy", "127.0.0.1"], storageFunctions);
  return [
    await speedRow(server, { photographs, rounds: context.full ? 8 : 3 }),
    await latencyRow(server, { photographs, load: context.load(), count: context.full ? 4_000 : 1_000 }),
  ];
}

async function speedRow(
  server: ServerProcess,
  { photographs, rounds }: { readonly photographs: TestPhotos; readonly rounds: number },
): Promise<Row> {
  const rates: { ours: number[]; bare: number[] } = { ours: [], bare: [] };
  for (let round = -1; round < rounds; round++) {
    // Each round has files of its own, without cached thumbnails.
    const ids = [];
    for (const image of photographs.images) {
      ids.push(await uploaded(server, image, { type: "image/jpeg", from: `203.0.113.${round + 2}` }));
    }
    const startedAt = performance.now();
    await Promise.all(ids.map((id) => thumbnail(server, { id, width: EDGE })));
    const ours = ids.length / ((performance.now() - startedAt) / 1000);
    const bare = await photographs.loop();
    if (round < 0) continue;
    rates.ours.push(ours);
    rates.bare.push(bare);
  }
  const [own, bare] = [median(rates.ours), median(rates.bare)];
  return {
    name: "thumbnails of 2000 x 1333 to 500 x 500: each second",
    measured: `${own.toFixed(1)}/s`,
    control: `${bare.toFixed(1)}/s by plain sharp in a loop`,
    ratio: own / bare,
    target: { atLeast: 0.8 },
    details: { oursPerSecond: rates.ours, controlPerSecond: rates.bare },
  };
}

async function latencyRow(
  server: ServerProcess,
  { photographs, load, count }: {
    readonly photographs: TestPhotos;
    /** Calls from a process of its own: what this one does with thumbnails would be felt. */
    readonly load: LoadProcess;
    readonly count: number;
  },
): Promise<Row> {
  const ids: string[] = [];
  for (const image of photographs.images) {
    ids.push(await uploaded(server, image, { type: "image/jpeg", from: "203.0.113.100" }));
  }
  const body = JSON.stringify({ path: "files:metadata", args: { id: ids[0] } });
  const p99 = async () => {
    const times = await load.run("callTimes", { port: server.port, path: "/api/query", body, count });
    return percentile(times, 0.99);
  };
  const p99s: { alone: number[]; beside: number[] } = { alone: [], beside: [] };
  let made = 0;
  for (let round = -1; round < 3; round++) {
    const alone = await p99();
    let over = false;
    // Widths of their own, so that each thumbnail is a new one.
    const makers = Array.from({ length: IN_PROGRESS }, async () => {
      while (!over) {
        const number = made++;
        const width = EDGE - Math.floor(number / ids.length);
        await thumbnail(server, { id: ids[number % ids.length] ?? "", width });
      }
    });
    const beside = await p99();
    over = true;
    await Promise.all(makers);
    if (round < 0) continue;
    p99s.alone.push(alone);
    p99s.beside.push(beside);
  }
  const [alone, beside] = [median(p99s.alone), median(p99s.beside)];
  return {
    name: `query calls with ${IN_PROGRESS} thumbnails in progress, p99`,
    measured: `${beside.toFixed(2)} ms`,
    control: `${alone.toFixed(2)} ms without`,
    ratio: beside / alone,
    target: { atMost: 2 },
    details: { ...p99s, made },
  };
}

async function thumbnail(
  server: ServerProcess,
  { id, width }: { readonly id: string; readonly width: number },
): Promise<void> {
  const url = `http://127.0.0.1:${server.port}/api/storage/${id}?thumb=${width}x${EDGE}&fit=cover`;
  const response = await fetch(url);
  const bytes = await response.bytes();
  if (!response.ok || bytes.length < 1_000) throw new Error(`${response.status} ${url}`);
}
