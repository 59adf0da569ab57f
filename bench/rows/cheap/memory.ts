/** Proportional share of all processes in five states, with what the machine has and as on a small one. */
import { type BenchContext, pause, transferFunctions } from "../../context.ts";
import { memoryByProcess, type TreeMemory } from "../../support/cost.ts";
import type { LoadProcess } from "../../support/load_process.ts";
import { RawHttp } from "../../../tests/support/processes/raw_http.ts";
import { median } from "../../support/statistics.ts";
import type { Row } from "../../table.ts";
import { seedAccounts } from "../transfer.ts";
import { uniform } from "./transfers.ts";

const SOCKETS = 5_000;
const SIGN_INS = 8;
const PASSWORD = "correct horse battery";
/** Long enough for the runtime to collect what went before. */
const SETTLE_MS = 6_000;
const LOOK_MS = 100;
const AFTERWARDS_MS = 20_000;

/** States, with the most megabytes that are wanted of each. */
const states = {
  "idle": 110,
  "5,000 idle sockets": 230,
  "8 sign-ins at once": 250,
  "20 s after the sign-ins": 130,
  "under transfers": 230,
};
type States = Record<keyof typeof states, TreeMemory>;

export async function memoryRows(context: BenchContext): Promise<Row[]> {
  const bare = await controls(context);
  const rows: Row[] = [];
  for (const flags of [[], ["--memory", "512MiB"]]) {
    const rounds: States[] = [];
    for (let round = 0; round < (context.full && flags.length === 0 ? 3 : 1); round++) {
      rounds.push(await ours(context, flags));
    }
    for (const [state, target] of Object.entries(states) as [keyof States, number][]) {
      const bytes = median(rounds.map((round) => round[state].bytes));
      const of = bare[state]?.bytes;
      const { byProcess = "" } = rounds.find((round) => round[state].bytes === bytes)?.[state] ?? {};
      rows.push({
        name: ["memory", state, ...flags.length > 0 ? [flags.join(" ")] : []].join(", "),
        measured: `${(bytes / 1e6).toFixed(0)} MB: ${byProcess}`,
        control: of === undefined ? "" : `${(of / 1e6).toFixed(0)} MB`,
        ratio: bytes / 1e6,
        target: { atMost: target },
        details: { rounds: rounds.map((round) => round[state]) },
      });
    }
  }
  return rows;
}

async function ours(outer: BenchContext, flags: readonly string[]): Promise<States> {
  await using context = outer.inner();
  const server = await context.serverWith(["--trusted-proxy", "127.0.0.1", ...flags], transferFunctions);
  const { pid, port } = server;
  const load = context.load();
  await pause(SETTLE_MS);
  const idle = await memoryByProcess(pid);
  await load.run("openAudience", {
    ...{ name: "idle", port, path: "/api/sync", triggerPath: "/api/sync", sockets: SOCKETS },
    subscribe: { udfPath: "accounts:get_account", args: '{"id":0}', perSocket: 1 },
  });
  await pause(SETTLE_MS);
  const sockets = await memoryByProcess(pid);
  await load.run("closeAudience", { name: "idle" });
  await Promise.all(people((index) => account(port, { endpoint: "signup", index })));
  await pause(SETTLE_MS);
  const signIns = await most(
    pid,
    () => Promise.all(people((index) => account(port, { endpoint: "signin", index }))),
  );
  await pause(AFTERWARDS_MS);
  const afterSignIns = await memoryByProcess(pid);
  await seedAccounts(server, uniform.accounts);
  return {
    ...{ idle, "5,000 idle sockets": sockets },
    ...{ "8 sign-ins at once": signIns, "20 s after the sign-ins": afterSignIns },
    "under transfers": await underTransfers(load, { pid, port }),
  };
}

/** The same of bare servers, which sign nobody in. */
async function controls(outer: BenchContext): Promise<Partial<States>> {
  await using context = outer.inner();
  const bare = await context.controlProcess("sqlite_server", [String(uniform.accounts)]);
  const broadcast = await context.controlProcess("websocket_server");
  const load = context.load();
  await pause(SETTLE_MS);
  const idle = await memoryByProcess(bare.pid);
  await load.run("openAudience", {
    ...{ name: "idle", port: broadcast.port, path: "/listen", triggerPath: "/trigger", sockets: SOCKETS },
    subscribe: null,
  });
  await pause(SETTLE_MS);
  const sockets = await memoryByProcess(broadcast.pid);
  await load.run("closeAudience", { name: "idle" });
  return { idle, "5,000 idle sockets": sockets, "under transfers": await underTransfers(load, bare) };
}

async function underTransfers(
  load: LoadProcess,
  { pid, port }: { readonly pid: number; readonly port: number },
): Promise<TreeMemory> {
  return await most(pid, () =>
    load.run("webSocketLoop", {
      ...{ port, path: "/api/sync", clients: 64, inFlight: 40, eachAlone: true },
      ...{ durationMs: 4_000, workload: uniform },
    }));
}

/** The most memory that was seen while something was done. */
async function most(pid: number, work: () => Promise<unknown>): Promise<TreeMemory> {
  let over = false;
  const looking = (async () => {
    let memory: TreeMemory = { bytes: 0, byProcess: "" };
    do {
      const next = await memoryByProcess(pid);
      if (next.bytes > memory.bytes) memory = next;
      await pause(LOOK_MS);
    } while (!over);
    return memory;
  })();
  try {
    await work();
  } finally {
    over = true;
  }
  return await looking;
}

function people<Result>(of: (index: number) => Promise<Result>): Promise<Result>[] {
  return Array.from({ length: SIGN_INS }, (_, index) => of(index));
}

async function account(
  port: number,
  { endpoint, index }: { readonly endpoint: "signup" | "signin"; readonly index: number },
): Promise<void> {
  using connection = await RawHttp.connect(port);
  const body = JSON.stringify({ email: `user-${index}@example.com`, password: PASSWORD });
  const headers = { "X-Forwarded-For": `10.0.0.${index}` };
  const answer = await connection.post(`/api/auth/${endpoint}`, body, { headers });
  if (answer.status !== 200) throw new Error(`${endpoint}: ${answer.status} ${answer.body}`);
}
