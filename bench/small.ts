/**
 * `deno task bench:small [--seconds n] [--memory MB]`: a server with one processor and 512 MB, or as given, all its processes
 * together, serves 1,000 sockets and 500 mutations a second while a backup is made and four people sign in at once, again and again.
 * Exits with 1 if anything was refused, failed, swapped or killed, or if the mutations fell behind their pace. The limits are
 * those of a control group where this process may create one. Otherwise the server is started for that memory and pinned to a
 * processor.
 */
import { parseArgs } from "node:util";
import { join } from "node:path";
import { benchFunctions } from "./context.ts";
import { treeMemory, treeTimeUs } from "./support/cost.ts";
import { LoadProcess } from "./support/load_process.ts";
import { ServerProcess } from "../tests/support/processes/server_process.ts";
import { SmallGroup } from "./support/small_group.ts";
import { missedPace } from "./support/pace.ts";
import { median } from "./support/statistics.ts";
import { durations, print, Usage } from "./support/usage.ts";

const SOCKETS = 1_000;
const MUTATIONS_PER_SECOND = 500;
const SIGN_INS_AT_ONCE = 4;
const ROWS = 4_000;
const PASSWORD = "correct horse battery";

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "300" }, memory: { type: "string", default: "512" } },
});
const seconds = Number(values.seconds);
const memoryMiB = Number(values.memory);
const memoryBytes = memoryMiB * 1024 * 1024;

const dir = Deno.makeTempDirSync({ prefix: "syncline-small-" });
try {
  await using group = await SmallGroup.make({ name: `syncline-${Deno.pid}`, memoryBytes });
  const dataDir = join(dir, "data");
  const { starter: entering } = group;
  // Main's heap is sized at its start, as docs/sizing.md recommends.
  const heap = memoryMiB < 512
    ? "--max-semi-space-size=2,--max-old-space-size=160"
    : "--max-semi-space-size=4";
  const starter = [...entering, "env", `DENO_V8_FLAGS=${heap}`];
  await using server = await ServerProcess.start({
    entry: "mod/build/start.ts",
    dataDir,
    functions: benchFunctions,
    starter,
    flags: ["--trusted-proxy", "127.0.0.1", ...(group.bounded ? [] : ["--memory", String(memoryBytes)])],
  });
  await server.call("mutation", "rows:fill", { start: 0, count: ROWS, chars: 500 });
  await using load = new LoadProcess(group.bounded ? {} : { starter: ["taskset", "-c", "1"] });
  await load.run("openAudience", {
    name: "all",
    port: server.port,
    path: "/api/sync",
    triggerPath: "/api/sync",
    sockets: SOCKETS,
    subscribe: { udfPath: "rows:get", args: '{"number":{n}}', perSocket: 1 },
  });
  const usage = new Usage(server);
  const people = Array.from({ length: SIGN_INS_AT_ONCE }, (_, i) => ({
    email: `user-${i}@example.com`,
    password: PASSWORD,
  }));
  for (const person of people) await usage.post("/api/auth/signup", person);
  const timeBefore = await treeTimeUs(server.pid);
  const memoryUsed: number[] = [];
  const since = performance.now();
  const endAt = since + seconds * 1000;
  const [mutations, signIns, backups] = await Promise.all([
    usage.steadyCalls(
      (number) => ({ kind: "mutation", path: "rows:set", args: { number: number % ROWS, value: number } }),
      { perSecond: MUTATIONS_PER_SECOND, endAt },
    ),
    usage.repeat(async () => {
      await Promise.all(people.map((person) => usage.post("/api/auth/signin", person)));
      return null;
    }, { endAt }),
    usage.repeat(() => usage.backup(dataDir, starter), { endAt }),
    usage.repeat(async () => {
      memoryUsed.push(await treeMemory(server.pid));
      return null;
    }, { endAt }),
  ]);
  const missed = missedPace({ done: mutations.length, perSecond: MUTATIONS_PER_SECOND, ms: endAt - since });
  if (missed !== null) usage.failed(missed);
  const processorMs = (await treeTimeUs(server.pid) - timeBefore) / 1000;
  const memory = await group.memory();
  await load.run("closeAudience", { name: "all" });
  if (memory !== null && memory.killed > 0) usage.failed(`${memory.killed} processes were killed`);
  if (memory !== null && memory.swappedBytes > 0) usage.failed(`${memory.swappedBytes} bytes were swapped`);
  print(
    group.bounded
      ? `in a control group of one processor and ${memoryMiB} MB`
      : `without a control group: pinned, started for ${memoryMiB} MB`,
  );
  print(`mutations, ${MUTATIONS_PER_SECOND} a second: ${durations(mutations)}`);
  print(`four sign-ins at once: ${durations(signIns)}`);
  print(`backups: ${durations(backups)}`);
  print(`processor: ${(processorMs / seconds / 10).toFixed(0)} % of one`);
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
  print(
    `memory of the server: ${megabytes(median(memoryUsed))}, at most ${megabytes(Math.max(...memoryUsed))}`,
  );
  if (memory !== null) print(`with pages of files and backups, at most ${megabytes(memory.peakBytes)}`);
  for (const [message, count] of usage.failures) print(`FAILED ${count} times: ${message}`);
  if (usage.failures.size > 0) Deno.exitCode = 1;
} finally {
  Deno.removeSync(dir, { recursive: true });
}
