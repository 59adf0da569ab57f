/** Deoptimizations of functions in main, the writer and the readers under different loads. */
import { type BenchContext, benchFunctions, transferFunctions } from "../../context.ts";
import { setRowMessage } from "../../load/messages.ts";
import { loggingStarter, readDeoptimizations, rolesOf } from "../../support/deoptimizations.ts";
import type { LoadProcess } from "../../support/load_process.ts";
import { seedAccounts, seedRooms, seedRows } from "../../support/seed.ts";
import type { ServerProcess } from "../../../tests/support/processes/server_process.ts";
import type { Row } from "../../table.ts";
import { CLIENTS, uniform } from "./transfers.ts";

const ACCOUNTS = 10_000;
const COUNT_MAX = 5;

interface Loaded {
  readonly server: ServerProcess;
  readonly load: LoadProcess;
  readonly durationMs: number;
}
type Work = (loaded: Loaded) => Promise<unknown>;

const clients = { clients: CLIENTS, workload: { ...uniform, accounts: ACCOUNTS } };

/** Loads of the transfer functions. */
const transferLoads: Readonly<Record<string, Work>> = {
  "transfers, HTTP": ({ server: { port }, load, durationMs }) =>
    load.run("httpLoop", { ...clients, port, durationMs }),
  "transfers, sockets x 1": ({ server: { port }, load, durationMs }) =>
    load.run("webSocketLoop", { ...clients, port, durationMs, inFlight: 1 }),
  "transfers, sockets x 40": ({ server: { port }, load, durationMs }) =>
    load.run("webSocketLoop", { ...clients, port, durationMs, inFlight: 40 }),
  "point reads, HTTP": ({ server: { port }, load, durationMs }) =>
    load.run("httpLoop", { ...clients, port, durationMs, calls: "reads" }),
};

/** Loads of the benchmark's functions. */
const rowLoads: Readonly<Record<string, Work>> = {
  "inserts with a membership rule": async ({ server, load, durationMs }) => {
    await seedRooms(server, 100);
    const workload = { ...uniform, accounts: 100 };
    await load.run("httpLoop", { ...clients, port: server.port, durationMs, workload, calls: "posts" });
  },
  "fan-out to 200 sockets": async ({ server, load, durationMs }) => {
    await seedRows(server, { count: 20, chars: 50 });
    await load.run("openSubscribers", {
      ...{ name: "all", port: server.port, sockets: 200 },
      subscribe: { udfPath: "rows:list", args: '{"start":0,"count":20}', perSocket: 1 },
    });
    const messages = Array.from({ length: durationMs / 10 }, (_, i) => setRowMessage(7, i + 1));
    const options = { messages, deliveries: 200, intervalMs: 0, marker: '"QueryUpdated"' };
    await load.run("trigger", { ...options, name: "all" });
  },
  "a live list of 1,000": async ({ server, load, durationMs }) => {
    await seedRows(server, { count: 1_000, chars: 150 });
    const list = { port: server.port, count: 1_000, changes: durationMs / 20, pauseMs: 5, bare: false };
    await load.run("liveList", list);
  },
};

export async function deoptimizationRows(context: BenchContext): Promise<Row[]> {
  const rows: Row[] = [];
  for (
    const [functions, loads] of [[transferFunctions, transferLoads], [benchFunctions, rowLoads]] as const
  ) {
    for (const [name, work] of Object.entries(loads)) {
      rows.push(await measure(context, { functions, name, work }));
    }
  }
  return rows;
}

async function measure(
  outer: BenchContext,
  { functions, name, work }: { readonly functions: string; readonly name: string; readonly work: Work },
): Promise<Row> {
  await using context = outer.inner();
  const folder = context.folder();
  const durationMs = context.full ? 8_000 : 4_000;
  const server = await context.server(functions, { starter: await loggingStarter(folder) });
  if (functions === transferFunctions) await seedAccounts(server, ACCOUNTS);
  await work({ server, load: context.load(), durationMs });
  const roles = await rolesOf(server.pid);
  await server.stop();
  const all = readDeoptimizations(folder, roles);
  const most = all[0]?.count ?? 0;
  const excessive = all.filter(({ count }) => count > COUNT_MAX).slice(0, 3)
    .map(({ process, name, count }) => `${name.split(" ")[0]} (${process}) ${count}`);
  return {
    name: `deoptimizations of one function in ${durationMs / 1_000} s of ${name}`,
    measured: excessive.length === 0 ? String(most) : excessive.join(", "),
    control: "",
    ratio: most,
    target: { atMost: COUNT_MAX },
    details: { all: all.slice(0, 20), processes: [...roles.values()] },
  };
}
