/**
 * `deno task bench:mixed [--seconds n]`: an hour of mixed use. Reads, writes, sockets that come and go, uploads, sign-ins and
 * backups run at a moderate pace. Memory of the idle server is measured before and after, and once a minute in between. Exits
 * with 1 if a call failed or if the server ends more than 20 MB above where it began.
 */
import { parseArgs } from "node:util";
import { join } from "node:path";
import { benchFunctions, pause } from "./context.ts";
import { memoryByProcess, treeTimeUs } from "./support/cost.ts";
import { sent } from "./support/file_uploads.ts";
import { LoadProcess } from "./support/load_process.ts";
import { ServerProcess } from "../tests/support/processes/server_process.ts";
import { durations, print, Usage } from "./support/usage.ts";

const ROWS = 4_000;
const READS_PER_SECOND = 100;
const WRITES_PER_SECOND = 50;
const SOCKETS = 200;
const SOCKETS_STAY_MS = 15_000;
const PEOPLE = 20;
const PASSWORD = "correct horse battery";
const UPLOAD_BYTES = 1024 * 1024;
/** Use of each kind before the first measurement, so that all processes have started. */
const WARM_UP_MS = 60_000;
/** Idle time before a measurement. Additional readers have stopped, and the other processes have collected their garbage. */
const REST_MS = 150_000;
const MORE_BYTES_MAX = 20e6;

const { values } = parseArgs({ options: { seconds: { type: "string", default: "3600" } } });

/** Uses the server until `endAt`. */
async function use(
  usage: Usage,
  { load, dataDir, endAt }: {
    readonly load: LoadProcess;
    readonly dataDir: string;
    readonly endAt: number;
  },
): Promise<void> {
  const { server } = usage;
  const file = crypto.getRandomValues(new Uint8Array(65_536));
  const body = new Blob(Array.from({ length: UPLOAD_BYTES / file.length }, () => file));
  let signIns = 0;
  let audiences = 0;
  const [reads, writes] = await Promise.all([
    usage.steadyCalls((number) => {
      // Each tenth read is a list, and half of the others repeat the same few rows.
      if (number % 10 === 0) {
        return { kind: "query", path: "rows:list", args: { start: number % ROWS, count: 100 } };
      }
      const row = number % 2 === 0 ? number % 100 : Math.floor(Math.random() * ROWS);
      return { kind: "query", path: "rows:get", args: { number: row } };
    }, { perSecond: READS_PER_SECOND, endAt }),
    usage.steadyCalls(
      (number) => ({ kind: "mutation", path: "rows:set", args: { number: number % ROWS, value: number } }),
      { perSecond: WRITES_PER_SECOND, endAt },
    ),
    usage.repeat(async () => {
      const name = `audience ${++audiences}`;
      await load.run("openAudience", {
        name,
        port: server.port,
        path: "/api/sync",
        triggerPath: "/api/sync",
        sockets: SOCKETS,
        subscribe: { udfPath: "rows:get", args: '{"number":{n}}', perSocket: 5 },
      });
      await pause(Math.min(SOCKETS_STAY_MS, Math.max(0, endAt - performance.now())));
      await load.run("closeAudience", { name });
      return null;
    }, { endAt }),
    usage.repeat(async () => {
      const email = emailOf(signIns++ % PEOPLE);
      const { refreshToken } = JSON.parse(
        await usage.post("/api/auth/signin", { email, password: PASSWORD }),
      );
      await usage.post("/api/auth/signout", { refreshToken });
      return null;
    }, { endAt, pauseMs: 2_000 }),
    usage.repeat(async () => {
      const path = await server.call("mutation", "files:generate");
      const id = await sent(`http://127.0.0.1:${server.port}${path}`, body);
      await server.call("mutation", "files:remove", { id });
      return null;
    }, { endAt, pauseMs: 5_000 }),
    usage.repeat(() => usage.backup(dataDir), { endAt, pauseMs: 60_000 }),
  ]);
  print(`reads: ${durations(reads)}; writes: ${durations(writes)}`);
}

function emailOf(person: number): string {
  return `user-${person}@example.com`;
}

const dir = Deno.makeTempDirSync({ prefix: "syncline-mixed-" });
try {
  const dataDir = join(dir, "data");
  await using server = await ServerProcess.start({
    entry: "mod/build/start.ts",
    dataDir,
    functions: benchFunctions,
    flags: ["--trusted-proxy", "127.0.0.1"],
  });
  const startedAt = performance.now();
  const measure = async (state: string): Promise<number> => {
    const { bytes, byProcess } = await memoryByProcess(server.pid);
    const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1);
    print(`${minutes} min, ${state}: ${(bytes / 1e6).toFixed(0)} MB (${byProcess})`);
    return bytes;
  };
  const usage = new Usage(server);
  await server.call("mutation", "rows:fill", { start: 0, count: ROWS, chars: 500 });
  for (let person = 0; person < PEOPLE; person++) {
    await usage.post("/api/auth/signup", { email: emailOf(person), password: PASSWORD });
  }
  await using load = new LoadProcess();
  await measure("started");
  await use(usage, { load, dataDir, endAt: performance.now() + WARM_UP_MS });
  await pause(REST_MS);
  const before = await measure("idle after a minute of use");
  const endAt = performance.now() + Number(values.seconds) * 1000;
  const timeBefore = await treeTimeUs(server.pid);
  const minutely = setInterval(() => {
    measure("in use").catch((error) => usage.failed(`memory could not be measured: ${error}`));
  }, 60_000);
  await use(usage, { load, dataDir, endAt });
  clearInterval(minutely);
  const processorMs = (await treeTimeUs(server.pid) - timeBefore) / 1000;
  print(`processor: ${(processorMs / Number(values.seconds) / 10).toFixed(1)} % of one`);
  await pause(REST_MS);
  const more = await measure("idle at the end") - before;
  print(`${(more / 1e6).toFixed(1)} MB more than before`);
  if (more > MORE_BYTES_MAX) usage.failed(`the server keeps ${(more / 1e6).toFixed(1)} MB more`);
  for (const [message, count] of usage.failures) print(`FAILED ${count} times: ${message}`);
  if (usage.failures.size > 0) Deno.exitCode = 1;
} finally {
  Deno.removeSync(dir, { recursive: true });
}
