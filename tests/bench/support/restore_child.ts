/** Restores the newest state of a replica into a folder, as the command does, and prints what it took. */
import { listGenerations, openTarget, planRestore, stagePoint } from "../../../mod/ops/replication/mod.ts";

const [replica = "", dataDir = ""] = Deno.args;
await using target = await openTarget({ kind: "folder", path: replica }, { make: false });
const plan = planRestore(await listGenerations(target), {}, { now: Date.now(), place: target.place });
const begun = performance.now();
const begins: Record<string, number> = {};
let commits = 0;
await stagePoint(target, plan, {
  dataDir,
  localFiles: false,
  onProgress(progress) {
    begins[progress.step] ??= performance.now();
    if (progress.step === "replay") commits = progress.ts - plan.snapshot.ts;
  },
});
const ended = performance.now();
const { replay = ended, check = ended, unpack = begun } = begins;
const seconds = {
  unpack: (replay - unpack) / 1_000,
  replay: (check - replay) / 1_000,
  check: (ended - check) / 1_000,
  all: (ended - begun) / 1_000,
};
Deno.stdout.writeSync(new TextEncoder().encode(`restored ${JSON.stringify({ commits, seconds })}\n`));
// Its figures are looked up before it ends.
await Deno.stdin.read(new Uint8Array(1));
