/** Thumbnails beside plain sharp in a loop, and what calls feel of them. */
import { type BenchContext, storageFunctions } from "../context.ts";
import { uploaded } from "../support/file_uploads.ts";
import { Photographs } from "../support/photographs.ts";
import { RawHttp } from "../support/raw_http.ts";
import type { ServerProcess } from "../support/server_process.ts";
import { median, percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const PHOTOGRAPHS = 12;
const IN_PROGRESS = 30;
const EDGE = 500;

export async function thumbnailRows(context: BenchContext): Promise<Row[]> {
  await using photographs = await Photographs.make(context.folder(), PHOTOGRAPHS);
  // More files than one client may upload: they come from several, as the server is told.
  const server = await context.serverWith(["--trusted-proxy", "127.0.0.1"], storageFunctions);
  return [
    await speedRow(server, { photographs, rounds: context.full ? 8 : 3 }),
    await latencyRow(server, { photographs, calls: context.full ? 4_000 : 1_000 }),
  ];
}

async function speedRow(
  server: ServerProcess,
  { photographs, rounds }: { readonly photographs: Photographs; readonly rounds: number },
): Promise<Row> {
  const rates: { ours: number[]; bare: number[] } = { ours: [], bare: [] };
  for (let round = -1; round < rounds; round++) {
    // Each round with files of its own, of which no thumbnail is kept.
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
  { photographs, calls }: { readonly photographs: Photographs; readonly calls: number },
): Promise<Row> {
  const ids: string[] = [];
  for (const image of photographs.images) {
    ids.push(await uploaded(server, image, { type: "image/jpeg", from: "203.0.113.100" }));
  }
  const [id = ""] = ids;
  const p99s: { alone: number[]; beside: number[] } = { alone: [], beside: [] };
  let made = 0;
  for (let round = -1; round < 3; round++) {
    const alone = percentile(await callTimes(server, { id, calls }), 0.99);
    let over = false;
    // Widths of their own, so that each thumbnail is a new one.
    const makers = Array.from({ length: IN_PROGRESS }, async () => {
      while (!over) {
        const number = made++;
        const width = EDGE - Math.floor(number / ids.length);
        await thumbnail(server, { id: ids[number % ids.length] ?? "", width });
      }
    });
    const beside = percentile(await callTimes(server, { id, calls }), 0.99);
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

/** Milliseconds of calls one after the other. */
async function callTimes(
  server: ServerProcess,
  { id, calls }: { readonly id: string; readonly calls: number },
): Promise<number[]> {
  using connection = await RawHttp.connect(server.port);
  const body = JSON.stringify({ path: "files:metadata", args: { id } });
  const times: number[] = [];
  for (let call = 0; call < calls; call++) {
    const startedAt = performance.now();
    const answer = await connection.post("/api/query", body);
    times.push(performance.now() - startedAt);
    if (!answer.body.startsWith('{"status":"success"')) throw new Error(answer.body);
  }
  return times;
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
