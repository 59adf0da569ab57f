/** Restores the newest state of a replica into a folder, as the command does, and prints the durations of the steps. */
import { cpuUsage } from "node:process";
import { listGenerations, openTarget, planRestore, stagePoint } from "../../mod/ops/replication/mod.ts";
import { print } from "./print.ts";

const [replica = "", dataDir = ""] = Deno.args;
await using target = await openTarget({ kind: "folder", path: replica }, { make: false });
const plan = planRestore(await listGenerations(target), {}, { now: Date.now(), location: target.location });
/** Seconds of processor time of all threads, and of the clock. */
const times = () => {
  const { user, system } = cpuUsage();
  return { processor: (user + system) / 1_000_000, clock: performance.now() / 1_000 };
};
const start = times();
const stepStarts: Partial<Record<"rows" | "fetch" | "unpack" | "replay" | "check", typeof start>> = {};
let commits = 0;
await stagePoint(target, plan, {
  dataDir,
  localFiles: false,
  onProgress(progress) {
    stepStarts[progress.step] ??= times();
    if (progress.step === "replay") commits = progress.ts - plan.snapshot.ts;
  },
});
const end = times();
const { replay = end, check = end, unpack = start } = stepStarts;
const durations = (kind: "processor" | "clock") => ({
  unpack: replay[kind] - unpack[kind],
  replay: check[kind] - replay[kind],
  check: end[kind] - check[kind],
  all: end[kind] - start[kind],
});
print(
  `restored ${JSON.stringify({ commits, seconds: durations("clock"), processor: durations("processor") })}`,
);
// Waits until the parent has read the peak memory.
await Deno.stdin.read(new Uint8Array(1));
