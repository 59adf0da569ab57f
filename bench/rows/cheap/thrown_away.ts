/** How often V8 throws away code of ours under each kind of load, in main, the writer and the readers. */
import { type BenchContext, benchFunctions, transferFunctions } from "../../context.ts";
import type { LoadProcess } from "../../support/load_process.ts";
import type { ServerProcess } from "../../../tests/support/processes/server_process.ts";
import { deoptimizations, logged, rolesOf } from "../../support/deoptimizations.ts";
import type { Row } from "../../table.ts";
import { seedAccounts } from "../transfer.ts";
import { uniform } from "./transfers.ts";

const ACCOUNTS = 10_000;
const TIMES_MAX = 5;

interface Loaded {
  readonly server: ServerProcess;
  readonly load: LoadProcess;
  readonly durationMs: number;
}

const workload = { ...uniform, accounts: ACCOUNTS };
const clients = { clients: 64, inFlight: 1, workload };

const transfers = {
  "transfers, HTTP": ({ server: { port }, load, durationMs }: Loaded) =>
    load.run("httpLoop", { ...clients, port, durationMs }),
  "transfers, sockets x 1": ({ server, load, durationMs }: Loaded) =>
    sockets({ server, load, durationMs }, 1),
  "transfers, sockets x 40": ({ server, load, durationMs }: Loaded) =>
    sockets({ server, load, durationMs }, 40),
  "point reads, HTTP": ({ server: { port }, load, durationMs }: Loaded) =>
    load.run("httpLoop", { ...clients, port, durationMs, calls: "reads" }),
};

const rows = {
  "inserts with a rule": async ({ server, load, durationMs }: Loaded) => {
    await server.call("mutation", "rooms:fill", { start: 0, count: 100 });
    const posts = { ...clients, workload: { ...workload, accounts: 100 } };
    await load.run("httpLoop", { ...posts, port: server.port, durationMs, calls: "posts" });
  },
  "fan-out to 200 sockets": fanOut,
  "a live list of 1,000": async ({ server, load, durationMs }: Loaded) => {
    await server.call("mutation", "rows:fill", { start: 0, count: 1_000, chars: 150 });
    const list = { port: server.port, count: 1_000, changes: durationMs / 20, pauseMs: 5, bare: false };
    await load.run("liveList", list);
  },
};

export async function deoptimizationRows(context: BenchContext): Promise<Row[]> {
  const measured: Row[] = [];
  for (const [functions, loads] of [[transferFunctions, transfers], [benchFunctions, rows]] as const) {
    for (const [name, work] of Object.entries(loads)) {
      measured.push(await thrown(context, { name, functions, work }));
    }
  }
  return measured;
}

async function thrown(
  outer: BenchContext,
  { name, functions, work }: {
    readonly name: string;
    readonly functions: string;
    readonly work: (loaded: Loaded) => Promise<unknown>;
  },
): Promise<Row> {
  await using context = outer.inner();
  const folder = context.folder();
  const durationMs = context.full ? 8_000 : 4_000;
  const server = await context.serverAs({ functions, starter: await logged(folder) });
  if (functions === transferFunctions) await seedAccounts(server, ACCOUNTS);
  await work({ server, load: context.load(), durationMs });
  const roles = await rolesOf(server.pid);
  await server.stop();
  const found = deoptimizations(folder, roles);
  const often = found.filter(({ times }) => times > TIMES_MAX);
  const shown = often.slice(0, 3).map(({ process, name, times }) =>
    `${name.split(" ")[0]} (${process}) ${times}`
  );
  return {
    name: `code thrown away in ${durationMs / 1_000} s of ${name}, the most of one function`,
    measured: often.length === 0 ? `${found[0]?.times ?? 0}` : shown.join(", "),
    control: "",
    ratio: found[0]?.times ?? 0,
    target: { atMost: TIMES_MAX },
    details: { found: found.slice(0, 20), processes: [...roles.values()] },
  };
}

async function sockets({ server: { port }, load, durationMs }: Loaded, inFlight: number): Promise<void> {
  const options = { ...clients, inFlight, eachAlone: true };
  await load.run("webSocketLoop", { ...options, port, path: "/api/sync", durationMs });
}

async function fanOut({ server, load, durationMs }: Loaded): Promise<void> {
  await server.call("mutation", "rows:fill", { start: 0, count: 20, chars: 50 });
  await load.run("openAudience", {
    ...{ name: "a", port: server.port, path: "/api/sync", triggerPath: "/api/sync", sockets: 200 },
    subscribe: { udfPath: "rows:list", args: '{"start":0,"count":20}', perSocket: 1 },
  });
  const messages = Array.from(
    { length: durationMs / 10 },
    (_, at) =>
      `{"type":"Mutation","requestId":{id},"udfPath":"rows:set","args":{"number":7,"value":${at + 1}}}`,
  );
  const options = { messages, deliveries: 200, intervalMs: 0, marker: '"QueryUpdated"' };
  await load.run("triggerAudience", { ...options, name: "a" });
}
