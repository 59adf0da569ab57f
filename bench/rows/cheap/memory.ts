/** Memory of all processes of a server in five states, with default settings and with `--memory 512MiB`. */
import { type BenchContext, type Control, transferFunctions } from "../../context.ts";
import type { LoadProcess } from "../../support/load_process.ts";
import { peakMemoryDuring, type TreeMemory, treeMemory } from "../../support/cost.ts";
import { megabytes } from "../../support/print.ts";
import { seedAccounts } from "../../support/seed.ts";
import { median } from "../../support/statistics.ts";
import { Usage } from "../../support/usage.ts";
import { pause } from "../../../tests/support/waiting.ts";
import type { Row } from "../../table.ts";
import { CLIENTS, uniform } from "./transfers.ts";

const SOCKETS = 5_000;
const SIGN_INS = 8;
/** Time for the runtime to collect garbage. */
const SETTLE_MS = 6_000;
const AFTER_SIGN_INS_MS = 20_000;

/** Targets of the states in megabytes. */
const targets = {
  "idle": 110,
  "5,000 idle sockets": 230,
  "8 sign-ins at once": 250,
  "20 s after the sign-ins": 130,
  "under transfers": 230,
};
type States = Record<keyof typeof targets, TreeMemory>;

export async function memoryRows(context: BenchContext): Promise<Row[]> {
  const control = await controlStates(context);
  const rows: Row[] = [];
  for (const flags of [[], ["--memory", "512MiB"]]) {
    const rounds: States[] = [];
    for (let round = 0; round < (context.full && flags.length === 0 ? 3 : 1); round++) {
      rounds.push(await serverStates(context, flags));
    }
    for (const [state, target] of Object.entries(targets) as [keyof States, number][]) {
      const bytes = median(rounds.map((round) => round[state].bytes));
      const controlBytes = control[state]?.bytes;
      const { byProcess = "" } = rounds.find((round) => round[state].bytes === bytes)?.[state] ?? {};
      rows.push({
        name: ["memory", state, ...flags.length > 0 ? [flags.join(" ")] : []].join(", "),
        measured: `${megabytes(bytes)}: ${byProcess}`,
        control: controlBytes === undefined ? "" : megabytes(controlBytes),
        ratio: bytes / 1e6,
        target: { atMost: target },
        details: { rounds: rounds.map((round) => round[state]) },
      });
    }
  }
  return rows;
}

async function serverStates(outer: BenchContext, flags: readonly string[]): Promise<States> {
  await using context = outer.inner();
  const server = await context.server(transferFunctions, {
    flags: ["--trusted-proxy", "127.0.0.1", ...flags],
  });
  const { pid, port } = server;
  const load = context.load();
  await pause(SETTLE_MS);
  const idle = await treeMemory(pid);
  await load.run("openSubscribers", {
    ...{ name: "idle", port, sockets: SOCKETS },
    subscribe: { udfPath: "accounts:get_account", args: '{"id":0}', perSocket: 1 },
  });
  await pause(SETTLE_MS);
  const sockets = await treeMemory(pid);
  await load.run("closeSubscribers", { name: "idle" });
  const usage = new Usage(server);
  const postForEachUser = (endpoint: "signup" | "signin") =>
    Promise.all(Array.from({ length: SIGN_INS }, (_, user) => {
      const credentials = { email: `user-${user}@example.com`, password: "correct horse battery" };
      return usage.post(`/api/auth/${endpoint}`, credentials);
    }));
  await postForEachUser("signup");
  await pause(SETTLE_MS);
  const signIns = await peakMemoryDuring(pid, () => postForEachUser("signin"));
  await pause(AFTER_SIGN_INS_MS);
  const afterSignIns = await treeMemory(pid);
  await seedAccounts(server, uniform.accounts);
  return {
    "idle": idle,
    "5,000 idle sockets": sockets,
    "8 sign-ins at once": signIns,
    "20 s after the sign-ins": afterSignIns,
    "under transfers": await underTransfers(load, server),
  };
}

/** The states of bare servers, which have no accounts. */
async function controlStates(outer: BenchContext): Promise<Partial<States>> {
  await using context = outer.inner();
  const bare = await context.control("sqlite_server", [uniform.accounts]);
  const broadcast = await context.control("websocket_server");
  const load = context.load();
  await pause(SETTLE_MS);
  const idle = await treeMemory(bare.pid);
  await load.run("openSubscribers", {
    ...{ name: "idle", port: broadcast.port, path: "/listen", sockets: SOCKETS },
    subscribe: null,
  });
  await pause(SETTLE_MS);
  const sockets = await treeMemory(broadcast.pid);
  await load.run("closeSubscribers", { name: "idle" });
  return { idle, "5,000 idle sockets": sockets, "under transfers": await underTransfers(load, bare) };
}

async function underTransfers(load: LoadProcess, { pid, port }: Control): Promise<TreeMemory> {
  return await peakMemoryDuring(pid, () =>
    load.run("webSocketLoop", {
      ...{ port, clients: CLIENTS, inFlight: 40, durationMs: 4_000, workload: uniform },
    }));
}
