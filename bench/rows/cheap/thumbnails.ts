/** New thumbnails beside plain sharp in a loop, and cached ones beside small responses from memory. */
import { type BenchContext, type Control, storageFunctions } from "../../context.ts";
import { costOf } from "../../support/cost.ts";
import { fetchThumbnail, thumbnailPath, uploadFile } from "../../support/files.ts";
import { compare, comparisonRow, roundsOf, type Sample } from "../../support/rounds.ts";
import { TestImages } from "../../support/test_images.ts";
import type { ServerProcess } from "../../../tests/support/processes/server_process.ts";
import type { Row } from "../../table.ts";

const IMAGES = 6;
const PARALLEL = 4;
const CONNECTIONS = 8;

export async function thumbnailRows(context: BenchContext): Promise<Row[]> {
  const images = await TestImages.create(context, IMAGES);
  // Uploads name different clients, because the number of files per client is limited.
  const server = await context.server(storageFunctions, { flags: ["--trusted-proxy", "127.0.0.1"] });
  const cold = { ours: [] as Sample<number>[], control: [] as Sample<number>[] };
  let cachedPath = "";
  for (let round = 0; round <= roundsOf(context); round++) {
    const paths: string[] = [];
    for (const file of images.files) {
      const id = await uploadFile(server, file, { type: "image/jpeg", from: `203.0.113.${round + 1}` });
      paths.push(thumbnailPath(id));
    }
    cachedPath = paths[0] ?? "";
    const operations = () => IMAGES;
    const ours = await costOf(server.pid, { work: () => fetchNew(server, paths), operations });
    const control = await costOf(images.pid, { work: () => images.resizeAll(), operations });
    // The first round warms up.
    if (round === 0) continue;
    cold.ours.push(ours);
    cold.control.push(control);
  }
  const rate = { value: (rate: number) => rate, unit: "/s" };
  return [
    comparisonRow(`thumbnails, cold, ${PARALLEL} in parallel`, cold, {
      ...{ ...rate, target: { atLeast: 38 / 45 } },
    }),
    comparisonRow("thumbnails, warm", await compareWarm(context, server, cachedPath), {
      ...{ ...rate, digits: 0, targetOf: "ours", target: { atLeast: 6_000 } },
    }),
  ];
}

/** Returns the thumbnails per second. */
async function fetchNew(server: ServerProcess, paths: readonly string[]): Promise<number> {
  const remaining = paths.values();
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: PARALLEL }, async () => {
    for (const path of remaining) await fetchThumbnail(server, path);
  }));
  return paths.length / ((performance.now() - startedAt) / 1_000);
}

async function compareWarm(context: BenchContext, server: Control, path: string) {
  const load = context.load();
  const count = context.full ? 15_000 : 5_000;
  const side = ({ pid, port }: Control, path: string) => ({
    pid,
    work: () => load.run("rawGets", { port, path, count, connections: CONNECTIONS }),
  });
  return await compare(context, {
    ours: side(server, path),
    control: side(await context.control("file_server"), "/small"),
    operations: () => count,
  });
}
