/**
 * `deno task bench:small [--seconds n]`: a server with one processor and 512 MB, all its processes together, serves 1,000
 * sockets and 500 mutations a second while a backup is made and four people sign in at once, again and again. Ends with 1
 * when anything was refused, failed, or had to be swapped or killed, or when the mutations fell behind their pace. The bounds are those of a control group where this
 * process may make one; where it may not, the server is started for that memory and pinned to a processor.
 */
import { parseArgs } from "node:util";
import { join } from "node:path";
import { benchFunctions } from "./context.ts";
import { Child } from "../tests/support/processes/child.ts";
import { treeMemory, treeTimeUs } from "./support/cost.ts";
import { RawHttp } from "../tests/support/processes/raw_http.ts";
import { LoadProcess } from "./support/load_process.ts";
import { ServerProcess } from "../tests/support/processes/server_process.ts";
import { SmallGroup } from "./support/small_group.ts";
import { missedPace } from "./support/pace.ts";
import { median, percentile } from "./support/statistics.ts";

const SOCKETS = 1_000;
const MUTATIONS_PER_SECOND = 500;
const SIGN_INS_AT_ONCE = 4;
const MEMORY_BYTES = 512 * 1024 * 1024;
const ROWS = 4_000;
const PASSWORD = "correct horse battery";

const { values } = parseArgs({ options: { seconds: { type: "string", default: "300" } } });
const seconds = Number(values.seconds);
const encoder = new TextEncoder();

function say(text: string): void {
  Deno.stdout.writeSync(encoder.encode(`${text}\n`));
}

/** Errors by kind. */
const failures = new Map<string, number>();

function failed(what: string): void {
  failures.set(what, (failures.get(what) ?? 0) + 1);
}

/** Time between two turns of what is repeated. */
const PAUSE_MS = 500;

/** Repeats something until the time is over; its durations in ms. */
async function again(endAt: number, work: () => Promise<string | null>): Promise<number[]> {
  const times: number[] = [];
  while (performance.now() < endAt) {
    const since = performance.now();
    const failure = await work();
    if (failure !== null) failed(failure);
    times.push(performance.now() - since);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  return times;
}

async function post(server: ServerProcess, path: string, body: object): Promise<string | null> {
  try {
    using connection = await RawHttp.connect(server.port);
    const answer = await connection.post(path, JSON.stringify(body), { headers: fromSomewhere() });
    return answer.status === 200 ? null : `${path}: ${answer.status} ${answer.body.slice(0, 200)}`;
  } catch (error) {
    return `${path}: ${error instanceof Error ? error.message : error}`;
  }
}

/** Each caller has its own address, because rate limits are not measured. */
let addresses = 0;
const fromSomewhere = () => ({
  "X-Forwarded-For": `10.${++addresses >> 16}.${addresses >> 8 & 255}.${addresses & 255}`,
});

async function call(connection: RawHttp, body: object): Promise<string | null> {
  try {
    const answer = await connection.post("/api/mutation", JSON.stringify(body));
    return answer.status === 200 ? null : `${answer.status} ${answer.body.slice(0, 200)}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Mutations at a steady pace, independent of the response times, which are returned in ms. */
async function steady(server: ServerProcess, endAt: number): Promise<number[]> {
  const lanes = 50;
  const everyMs = 1000 * lanes / MUTATIONS_PER_SECOND;
  const all = await Promise.all(Array.from({ length: lanes }, async (_, lane) => {
    const times: number[] = [];
    let connection = await RawHttp.connect(server.port);
    let dueAt = performance.now() + everyMs * lane / lanes;
    for (let turn = 0; performance.now() < endAt; turn++) {
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueAt - performance.now())));
      const args = { number: (turn * lanes + lane) % ROWS, value: turn };
      const failure = await call(connection, { path: "rows:set", args });
      if (failure !== null) {
        failed(`mutation: ${failure}`);
        connection[Symbol.dispose]();
        connection = await RawHttp.connect(server.port).catch(() => {
          throw new Error(`The server is gone: ${server.lastOutput.slice(-1_000)}`);
        });
      }
      // One that is late counts from when it was due.
      times.push(performance.now() - dueAt);
      dueAt += everyMs;
    }
    connection[Symbol.dispose]();
    return times;
  }));
  return all.flat();
}

/** A backup of the data folder that the server uses, made in the same group. */
async function backup(dataDir: string, starter: readonly string[]): Promise<string | null> {
  const out = join(dataDir, "..", `${crypto.randomUUID()}.tar.zst`);
  const args = ["run", "--no-prompt", "-P=backup", "cli.ts", "backup", "--data", dataDir, "--out", out];
  await using child = new Child({ args, starter });
  const { code } = await child.exited;
  if (code !== 0) return `backup: ${child.lastOutput.slice(-300)}`;
  await Deno.remove(out);
  return null;
}

function shown(times: readonly number[]): string {
  if (times.length === 0) return "none";
  const ms = (share: number) => percentile([...times], share).toFixed(0);
  return `${times.length}, p50 ${ms(0.5)} ms, p99 ${ms(0.99)} ms`;
}

const dir = Deno.makeTempDirSync({ prefix: "syncline-small-" });
try {
  await using group = await SmallGroup.make({ name: `syncline-${Deno.pid}`, memoryBytes: MEMORY_BYTES });
  const dataDir = join(dir, "data");
  const { starter: entering } = group;
  // Main's heap is sized at its start, as docs/sizing.md recommends.
  const starter = [...entering, "env", "DENO_V8_FLAGS=--max-semi-space-size=4"];
  await using server = await ServerProcess.start({
    entry: "mod/build/start.ts",
    dataDir,
    functions: benchFunctions,
    starter,
    flags: ["--trusted-proxy", "127.0.0.1", ...(group.bounded ? [] : ["--memory", String(MEMORY_BYTES)])],
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
  const endAt = performance.now() + seconds * 1000;
  const people = Array.from({ length: SIGN_INS_AT_ONCE }, (_, i) => ({
    email: `user-${i}@example.com`,
    password: PASSWORD,
  }));
  for (const person of people) {
    const failure = await post(server, "/api/auth/signup", person);
    if (failure !== null) failed(failure);
  }
  const timeBefore = await treeTimeUs(server.pid);
  const looks: number[] = [];
  const since = performance.now();
  const [mutations, signIns, backups] = await Promise.all([
    steady(server, endAt),
    again(endAt, async () => {
      const answers = await Promise.all(people.map((person) => post(server, "/api/auth/signin", person)));
      return answers.find((answer) => answer !== null) ?? null;
    }),
    again(endAt, () => backup(dataDir, starter)),
    again(endAt, async () => {
      looks.push(await treeMemory(server.pid));
      return null;
    }),
  ]);
  const missed = missedPace({ done: mutations.length, perSecond: MUTATIONS_PER_SECOND, ms: endAt - since });
  if (missed !== null) failed(missed);
  const processorMs = (await treeTimeUs(server.pid) - timeBefore) / 1000;
  const memory = await group.memory();
  await load.run("closeAudience", { name: "all" });
  if (memory !== null && memory.killed > 0) failed(`${memory.killed} processes were killed`);
  if (memory !== null && memory.swappedBytes > 0) failed(`${memory.swappedBytes} bytes were swapped`);
  say(
    group.bounded
      ? "in a control group of one processor and 512 MB"
      : "without a control group: pinned, started for 512 MB",
  );
  say(`mutations, ${MUTATIONS_PER_SECOND} a second: ${shown(mutations)}`);
  say(`four sign-ins at once: ${shown(signIns)}`);
  say(`backups: ${shown(backups)}`);
  say(`processor: ${(processorMs / seconds / 10).toFixed(0)} % of one`);
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
  say(`memory of the server: ${megabytes(median(looks))}, at most ${megabytes(Math.max(...looks))}`);
  if (memory !== null) say(`with pages of files and backups, at most ${megabytes(memory.peakBytes)}`);
  for (const [what, count] of failures) say(`FAILED ${count} times: ${what}`);
} finally {
  Deno.removeSync(dir, { recursive: true });
}
if (failures.size > 0) Deno.exitCode = 1;
