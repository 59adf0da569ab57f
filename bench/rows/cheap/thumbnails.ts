/** Thumbnails, four asked for at once, beside plain sharp in a loop; and those that are kept already. */
import { type BenchContext, storageFunctions } from "../../context.ts";
import { costOf } from "../../support/cost.ts";
import { uploaded } from "../../support/file_uploads.ts";
import { TestPhotos } from "../../support/test_photos.ts";
import type { ServerProcess } from "../../../tests/support/processes/server_process.ts";
import type { Row } from "../../table.ts";
import { inRoundRobin, roundsOf, rowOf, type Sample } from "./turns.ts";

const PHOTOGRAPHS = 6;
const AT_ONCE = 4;
const CONNECTIONS = 8;
const KEPT = "?thumb=500x500&fit=cover";

export async function thumbnailRows(context: BenchContext): Promise<Row[]> {
  const starter = context.serverStarter;
  await using photographs = await TestPhotos.make(context.folder(), PHOTOGRAPHS, { starter });
  // More files than one client may upload: the requests name several clients.
  const server = await context.serverWith(["--trusted-proxy", "127.0.0.1"], storageFunctions);
  const turns = { ours: [] as Sample<number>[], control: [] as Sample<number>[] };
  let kept = "";
  for (let round = -1; round < roundsOf(context); round++) {
    const ids: string[] = [];
    for (const image of photographs.images) {
      ids.push(await uploaded(server, image, { type: "image/jpeg", from: `203.0.113.${round + 2}` }));
    }
    kept = ids[0] ?? "";
    const count = () => PHOTOGRAPHS;
    const ours = await costOf(server.pid, { work: () => cold(server, ids), count });
    const control = await costOf(photographs.pid, { work: () => photographs.loop(), count });
    // The first round warms up.
    if (round < 0) continue;
    turns.ours.push(ours);
    turns.control.push(control);
  }
  const rate = { value: (rate: number) => rate, unit: "/s" };
  return [
    rowOf(`thumbnails, cold, ${AT_ONCE} at once`, turns, { ...rate, target: { atLeast: 38 / 45 } }),
    rowOf("thumbnails, warm, beside small answers from memory", await warm(context, { server, kept }), {
      ...{ ...rate, digits: 0, of: "ours", target: { atLeast: 6_000 } },
    }),
  ];
}

/** Thumbnails made each second. */
async function cold({ port }: ServerProcess, ids: readonly string[]): Promise<number> {
  const waiting = [...ids];
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      const response = await fetch(`http://127.0.0.1:${port}/api/storage/${id}${KEPT}`);
      const bytes = await response.bytes();
      if (!response.ok || bytes.length < 1_000) throw new Error(`${response.status} ${id}`);
    }
  }));
  return ids.length / ((performance.now() - startedAt) / 1_000);
}

/** Answers each second. */
async function warm(
  context: BenchContext,
  { server, kept }: { readonly server: ServerProcess; readonly kept: string },
) {
  const control = await context.controlProcess("file_server");
  const load = context.load();
  const count = context.full ? 15_000 : 5_000;
  const gets = ({ pid, port }: { pid: number; port: number }, path: string) => ({
    pid,
    work: () => load.run("gets", { port, path, count, connections: CONNECTIONS }),
  });
  return await inRoundRobin(context, {
    ours: gets(server, `/api/storage/${kept}${KEPT}`),
    control: gets(control, "/small"),
    count: () => count,
  });
}
