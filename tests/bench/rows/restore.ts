/** A restore from a replica: commits replayed each second, memory, and the time of all of it. */
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import type { BenchContext } from "../context.ts";
import { Child } from "../support/child.ts";
import { peakMemory, processorTimeUs } from "../support/process_tree.ts";
import { makeRestorable } from "../support/restorable.ts";
import type { Row } from "../table.ts";

const MB = 1_000_000;
const WAIT_MS = 30 * 60_000;
/** As the command is run. */
const HEAP = "--v8-flags=--max-old-space-size=256,--max-semi-space-size=16";

export async function restoreRows(context: BenchContext): Promise<Row[]> {
  const commits = context.full ? 1_000_000 : 100_000;
  const folder = context.folder();
  const { replica, databaseBytes } = await makeRestorable({
    ...{ folder, commits },
    notes: context.full ? 950_000 : 50_000,
    accounts: context.full ? 200_000 : 20_000,
  });
  const dataDir = join(folder, "restored");
  await Deno.mkdir(dataDir);
  await using child = new Child({
    args: [
      ..."run --quiet --no-prompt --no-check -P=restore".split(" "),
      HEAP,
      fileURLToPath(new URL("../support/restore_child.ts", import.meta.url)),
      replica,
      dataDir,
    ],
  });
  const [, told = ""] = await child.line(/^restored (.*)$/, WAIT_MS);
  const processorSeconds = await processorTimeUs(child.pid) / 1_000_000;
  const peakBytes = await peakMemory(child.pid);
  const { commits: replayed, seconds } = JSON.parse(told);
  if (replayed !== commits) throw new Error(`${replayed} commits of ${commits} were restored`);
  const perSecond = commits / seconds.replay;
  const database = `${commits} commits on ${(databaseBytes / MB).toFixed(0)} MB`;
  return [
    {
      name: "restore from a replica: commits replayed each second",
      measured: `${perSecond.toFixed(0)}/s`,
      control: database,
      ratio: perSecond / 30_000,
      target: { atLeast: 1 },
      details: { seconds, processorSeconds },
    },
    {
      name: "restore from a replica: memory at the most, MB",
      measured: `${(peakBytes / MB).toFixed(0)} MB`,
      control: `${seconds.all.toFixed(0)} s in all: unpack ${seconds.unpack.toFixed(0)}, replay ${
        seconds.replay.toFixed(0)
      }, check ${seconds.check.toFixed(0)}; ${processorSeconds.toFixed(0)} s of processor`,
      ratio: peakBytes / MB,
      target: { atMost: 300 },
      details: { peakBytes },
    },
  ];
}
