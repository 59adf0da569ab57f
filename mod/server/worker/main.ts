/** Entry point of a worker process. Reads its configuration from standard input and ends with the process that started it. */
import { type Log, stderrLog } from "../../kit/log.ts";
import { collectWhenIdle } from "../../kit/processes/idle_collection.ts";
import { readJsonLines } from "../../kit/processes/helper_process.ts";
import { workerLimits } from "../limits.ts";
import { openNativeSockets } from "../net/native_sockets.ts";
import type { WorkerBoot } from "../workers/boot.ts";
import { runWorker } from "./worker_server.ts";

async function bootOf(): Promise<WorkerBoot | null> {
  for await (const line of readJsonLines(Deno.stdin.readable, workerLimits.bootCharsMax)) {
    return JSON.parse(line) as WorkerBoot;
  }
  return null;
}

const boot = await bootOf();
if (boot === null) Deno.exit(1);
const plain = stderrLog({ debug: boot.config.dev });
const named: Log = (level, message, fields = {}) => plain(level, message, { ...fields, worker: boot.name });
const log: Log = Object.assign(named, { receivers: plain.receivers });
try {
  const native = await openNativeSockets();
  collectWhenIdle({ trim: native?.trimMemory });
  Deno.exit(await runWorker(boot, { native, log }) ? 0 : 1);
} catch (error) {
  log("error", "A worker cannot serve", { error });
  Deno.exit(1);
}
