/** Restores the newest state of a replica into a folder, as the command does, and prints what it took. */
import { cpuUsage } from "node:process";
import { listGenerations, openTarget, planRestore, stagePoint } from "../../mod/ops/replication/mod.ts";

const [replica = "", dataDir = ""] = Deno.args;
await using target = await openTarget({ kind: "folder", path: replica }, { make: false });
const plan = planRestore(await listGenerations(target), {}, { now: Date.now(), location: target.location });
/** Seconds of all threads of this process, and of the clock. */
const times = () => {
  const { user, system } = cpuUsage();
  return { processor: (user + system) / 1_000_000, clock: performance.now() / 1_000 };
};
const begun = times();
const begins: Partial<Record<"rows" | "fetch" | "unpack" | "replay" | "check", ReturnType<typeof times>>> =
  {};
let commits = 0;
await stagePoint(target, plan, {
  dataDir,
  localFiles: false,
  onProgress(progress) {
    begins[progress.step] ??= times();
    if (progress.step === "replay") commits = progress.ts - plan.snapshot.ts;
  },
});
const ended = times();
const { replay = ended, check = ended, unpack = begun } = begins;
const of = (kind: "processor" | "clock") => ({
  unpack: replay[kind] - unpack[kind],
  replay: check[kind] - replay[kind],
  check: ended[kind] - check[kind],
  all: ended[kind] - begun[kind],
});
const seconds = of("clock");
const processor = of("processor");
Deno.stdout.writeSync(
  new TextEncoder().encode(`restored ${JSON.stringify({ commits, seconds, processor })}\n`),
);
// Its figures are looked up before it ends.
await Deno.stdin.read(new Uint8Array(1));
