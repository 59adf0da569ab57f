/**
 * `deno task bench:mixed [--seconds n]`: an hour of mixed use at a moderate rate, with reads, writes, short-lived sockets,
 * uploads, sign-ins and backups. Measures the memory of the idle server before and after, and each minute in between. Exits
 * with 1 if a call failed or the anonymous memory grew by more than 20 MB. Proportional set sizes are only printed, because
 * they depend on other processes that run the same program.
 */
import { parseArgs } from "node:util";
import { join } from "node:path";
import { ServerProcess } from "../tests/support/processes/server_process.ts";
import { pause } from "../tests/support/waiting.ts";
import { benchFunctions } from "./context.ts";
import { treeMemory, treeTimeUs } from "./support/cost.ts";
import { uploadFile } from "./support/files.ts";
import { LoadProcess } from "./support/load_process.ts";
import { megabytes, print } from "./support/print.ts";
import { seedRows } from "./support/seed.ts";
import { summary, Usage } from "./support/usage.ts";

const ROWS = 4_000;
const READS_PER_SECOND = 100;
const WRITES_PER_SECOND = 50;
const SOCKETS = 200;
const SOCKETS_OPEN_MS = 15_000;
const USERS = 20;
const PASSWORD = "correct horse battery";
const UPLOAD_BYTES = 1024 * 1024;
/** Mixed use before the first measurement, so that all processes have started. */
const WARM_UP_MS = 60_000;
/** Idle time before a measurement. Additional readers stop, and the other processes collect their garbage. */
const IDLE_MS = 150_000;
const GROWTH_BYTES_MAX = 20e6;

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
  const [reads, writes] = await Promise.all([
    usage.pacedCalls((number) => {
      // Each tenth read is a list. Half of the others read one of 100 rows.
      if (number % 10 === 0) {
        return { kind: "query", path: "rows:list", args: { start: number % ROWS, count: 100 } };
      }
      const row = number % 2 === 0 ? number % 100 : Math.floor(Math.random() * ROWS);
      return { kind: "query", path: "rows:get", args: { number: row } };
    }, { perSecond: READS_PER_SECOND, endAt }),
    usage.pacedCalls(
      (number) => ({ kind: "mutation", path: "rows:set", args: { number: number % ROWS, value: number } }),
      { perSecond: WRITES_PER_SECOND, endAt },
    ),
    usage.repeat(async () => {
      await load.run("openSubscribers", {
        ...{ name: "all", port: server.port, sockets: SOCKETS },
        subscribe: { udfPath: "rows:get", args: '{"number":{n}}', perSocket: 5 },
      });
      await pause(Math.min(SOCKETS_OPEN_MS, Math.max(0, endAt - performance.now())));
      await load.run("closeSubscribers", { name: "all" });
    }, { endAt }),
    usage.repeat(async () => {
      const email = emailOf(signIns++ % USERS);
      const { refreshToken } = JSON.parse(
        await usage.post("/api/auth/signin", { email, password: PASSWORD }),
      );
      await usage.post("/api/auth/signout", { refreshToken });
    }, { endAt, pauseMs: 2_000 }),
    usage.repeat(async () => {
      await server.call("mutation", "files:remove", { id: await uploadFile(server, body) });
    }, { endAt, pauseMs: 5_000 }),
    usage.repeat(() => usage.backup(dataDir), { endAt, pauseMs: 60_000 }),
  ]);
  print(`reads: ${summary(reads)}; writes: ${summary(writes)}`);
}

function emailOf(user: number): string {
  return `user-${user}@example.com`;
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
    const { bytes, byProcess, anonymous } = await treeMemory(server.pid);
    const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1);
    print(
      `${minutes} min, ${state}: ${megabytes(bytes)} (${byProcess}), anonymous ${
        megabytes(anonymous.bytes)
      } (${anonymous.byProcess})`,
    );
    return anonymous.bytes;
  };
  const usage = new Usage(server);
  await seedRows(server, { count: ROWS, chars: 500 });
  for (let user = 0; user < USERS; user++) {
    await usage.post("/api/auth/signup", { email: emailOf(user), password: PASSWORD });
  }
  await using load = new LoadProcess();
  await measure("started");
  await use(usage, { load, dataDir, endAt: performance.now() + WARM_UP_MS });
  await pause(IDLE_MS);
  const before = await measure("idle after a minute of use");
  const endAt = performance.now() + Number(values.seconds) * 1000;
  const timeBefore = await treeTimeUs(server.pid);
  const minutely = setInterval(() => {
    measure("in use").catch((error) => usage.addFailure(error));
  }, 60_000);
  await use(usage, { load, dataDir, endAt });
  clearInterval(minutely);
  const processorMs = (await treeTimeUs(server.pid) - timeBefore) / 1000;
  print(`processor: ${(processorMs / Number(values.seconds) / 10).toFixed(1)} % of one`);
  await pause(IDLE_MS);
  const growth = await measure("idle at the end") - before;
  const grown = `Anonymous memory grew by ${(growth / 1e6).toFixed(1)} MB`;
  print(grown);
  if (growth > GROWTH_BYTES_MAX) usage.addFailure(`${grown}, more than ${megabytes(GROWTH_BYTES_MAX)}`);
  usage.reportFailures();
} finally {
  Deno.removeSync(dir, { recursive: true });
}
