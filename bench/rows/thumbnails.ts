/** New thumbnails beside plain sharp in a loop, and the latency of calls while thumbnails are created. */
import { type BenchContext, storageFunctions } from "../context.ts";
import { fetchThumbnail, thumbnailPath, uploadFile } from "../support/files.ts";
import { TestImages } from "../support/test_images.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";
import { median, percentile } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const IMAGES = 12;
const IN_PROGRESS = 30;
const EDGE = 500;

export async function thumbnailRows(context: BenchContext): Promise<Row[]> {
  const images = await TestImages.create(context, IMAGES);
  // Uploads name different clients, because the number of files per client is limited.
  const server = await context.server(storageFunctions, { flags: ["--trusted-proxy", "127.0.0.1"] });
  return [await rateRow(context, server, images), await latencyRow(context, server, images)];
}

async function uploadAll(server: ServerProcess, images: TestImages, from: string): Promise<string[]> {
  const ids: string[] = [];
  for (const file of images.files) ids.push(await uploadFile(server, file, { type: "image/jpeg", from }));
  return ids;
}

async function rateRow(context: BenchContext, server: ServerProcess, images: TestImages): Promise<Row> {
  const rates = { ours: [] as number[], control: [] as number[] };
  for (let round = 0; round <= (context.full ? 8 : 3); round++) {
    // New files have no cached thumbnails.
    const ids = await uploadAll(server, images, `203.0.113.${round + 1}`);
    const startedAt = performance.now();
    await Promise.all(ids.map((id) => fetchThumbnail(server, thumbnailPath(id))));
    const ours = ids.length / ((performance.now() - startedAt) / 1000);
    const control = await images.resizeAll();
    // The first round warms up.
    if (round === 0) continue;
    rates.ours.push(ours);
    rates.control.push(control);
  }
  const [ours, control] = [median(rates.ours), median(rates.control)];
  return {
    name: "thumbnails of 2000 x 1333 to 500 x 500: each second",
    measured: `${ours.toFixed(1)}/s`,
    control: `${control.toFixed(1)}/s by plain sharp in a loop`,
    ratio: ours / control,
    target: { atLeast: 0.8 },
    details: rates,
  };
}

async function latencyRow(context: BenchContext, server: ServerProcess, images: TestImages): Promise<Row> {
  const ids = await uploadAll(server, images, "203.0.113.100");
  const count = context.full ? 4_000 : 1_000;
  const load = context.load();
  const body = JSON.stringify({ path: "files:metadata", args: { id: ids[0] } });
  const callP99 = async () => {
    const times = await load.run("callTimes", { port: server.port, path: "/api/query", body, count });
    return percentile(times, 0.99);
  };
  const p99s = { alone: [] as number[], beside: [] as number[] };
  let requested = 0;
  for (let round = 0; round <= 3; round++) {
    const alone = await callP99();
    let isDone = false;
    const creating = Array.from({ length: IN_PROGRESS }, async () => {
      while (!isDone) {
        // A different width for each round of the images, so that each thumbnail is new.
        const number = requested++;
        const path = thumbnailPath(
          ids[number % ids.length] ?? "",
          EDGE - Math.floor(number / ids.length),
        );
        await fetchThumbnail(server, path);
      }
    });
    const beside = await callP99();
    isDone = true;
    await Promise.all(creating);
    // The first round warms up.
    if (round === 0) continue;
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
    details: { ...p99s, requested },
  };
}
