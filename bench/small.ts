/**
 * `deno task bench:small [--seconds n] [--memory MB]`: load on a server with one processor and 512 MB for all its processes.
 * It serves 1,000 sockets and 500 mutations per second, with repeated backups and concurrent sign-ins. Exits with 1 if a call
 * failed, a process was swapped or killed, or the mutations fell behind. The limits are those of a control group. Where none
 * can be created, the server is pinned to a processor and started for that memory.
 */
import { parseArgs } from "node:util";
import { join } from "node:path";
import { ServerProcess } from "../tests/support/processes/server_process.ts";
import { benchFunctions } from "./context.ts";
import { treeMemory, treeTimeUs } from "./support/cost.ts";
import { LoadProcess } from "./support/load_process.ts";
import { missedPace } from "./support/pace.ts";
import { megabytes, print } from "./support/print.ts";
import { seedRows } from "./support/seed.ts";
import { SmallGroup } from "./support/small_group.ts";
import { median } from "./support/statistics.ts";
import { summary, Usage } from "./support/usage.ts";

const SOCKETS = 1_000;
const MUTATIONS_PER_SECOND = 500;
const CONCURRENT_SIGN_INS = 4;
const ROWS = 4_000;

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "300" }, memory: { type: "string", default: "512" } },
});
const seconds = Number(values.seconds);
const memoryMiB = Number(values.memory);
const memoryBytes = memoryMiB * 1024 * 1024;

const dir = Deno.makeTempDirSync({ prefix: "syncline-small-" });
try {
  await using group = await SmallGroup.create({ name: `syncline-${Deno.pid}`, memoryBytes });
  const dataDir = join(dir, "data");
  // Main's heap is sized at its start, as docs/sizing.md recommends.
  const heap = memoryMiB < 512
    ? "--max-semi-space-size=2,--max-old-space-size=160"
    : "--max-semi-space-size=4";
  const starter = [...group.starter, "env", `DENO_V8_FLAGS=${heap}`];
  await using server = await ServerProcess.start({
    entry: "mod/build/start.ts",
    dataDir,
    functions: benchFunctions,
    starter,
    flags: ["--trusted-proxy", "127.0.0.1", ...(group.isLimited ? [] : ["--memory", String(memoryBytes)])],
  });
  await seedRows(server, { count: ROWS, chars: 500 });
  await using load = new LoadProcess(group.isLimited ? {} : { starter: ["taskset", "-c", "1"] });
  await load.run("openSubscribers", {
    ...{ name: "all", port: server.port, sockets: SOCKETS },
    subscribe: { udfPath: "rows:get", args: '{"number":{n}}', perSocket: 1 },
  });
  const usage = new Usage(server);
  const users = Array.from({ length: CONCURRENT_SIGN_INS }, (_, user) => ({
    email: `user-${user}@example.com`,
    password: "correct horse battery",
  }));
  for (const user of users) await usage.post("/api/auth/signup", user);
  const timeBefore = await treeTimeUs(server.pid);
  const memoryUsed: number[] = [];
  const startedAt = performance.now();
  const endAt = startedAt + seconds * 1000;
  const [mutations, signIns, backups] = await Promise.all([
    usage.pacedCalls(
      (number) => ({ kind: "mutation", path: "rows:set", args: { number: number % ROWS, value: number } }),
      { perSecond: MUTATIONS_PER_SECOND, endAt },
    ),
    usage.repeat(() => Promise.all(users.map((user) => usage.post("/api/auth/signin", user))), { endAt }),
    usage.repeat(() => usage.backup(dataDir, starter), { endAt }),
    usage.repeat(async () => memoryUsed.push((await treeMemory(server.pid)).bytes), { endAt }),
  ]);
  const missed = missedPace({
    done: mutations.length,
    perSecond: MUTATIONS_PER_SECOND,
    ms: endAt - startedAt,
  });
  if (missed !== null) usage.addFailure(missed);
  const processorMs = (await treeTimeUs(server.pid) - timeBefore) / 1000;
  const memory = await group.memory();
  await load.run("closeSubscribers", { name: "all" });
  if (memory !== null && memory.killed > 0) usage.addFailure(`${memory.killed} processes were killed`);
  if (memory !== null && memory.swappedBytes > 0) {
    usage.addFailure(`${memory.swappedBytes} bytes were swapped`);
  }
  print(
    group.isLimited
      ? `control group of one processor and ${memoryMiB} MB`
      : `no control group: pinned to a processor, started for ${memoryMiB} MB`,
  );
  print(`mutations, ${MUTATIONS_PER_SECOND} per second: ${summary(mutations)}`);
  print(`${CONCURRENT_SIGN_INS} concurrent sign-ins: ${summary(signIns)}`);
  print(`backups: ${summary(backups)}`);
  print(`processor: ${(processorMs / seconds / 10).toFixed(0)} % of one`);
  print(`memory: median ${megabytes(median(memoryUsed))}, maximum ${megabytes(Math.max(...memoryUsed))}`);
  if (memory !== null) print(`memory with file cache and backups: maximum ${megabytes(memory.peakBytes)}`);
  usage.reportFailures();
} finally {
  Deno.removeSync(dir, { recursive: true });
}
