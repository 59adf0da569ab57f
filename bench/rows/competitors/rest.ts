/** Resources of servers without work: at the start, at rest, with idle clients, and the size of the download. */
import { join } from "node:path";
import { gzip } from "node:zlib";
import { promisify } from "node:util";
import { projectDir } from "../../../tests/support/processes/child.ts";
import type { ServerProcess } from "../../../tests/support/processes/server_process.ts";
import { type BenchContext, pause } from "../../context.ts";
import { memoryByProcess, type TreeMemory, treeMemory, treeTimeUs } from "../../support/cost.ts";
import { median } from "../../support/statistics.ts";
import type { Row } from "../../table.ts";
import { roundsOf } from "../cheap/turns.ts";
import { startPair, startSyncline } from "./pair.ts";
import { PocketBase, rowId, ROWS_PATH } from "./pocketbase.ts";

const CLIENTS = 1_000;
/** Long enough for the runtime to collect what went before. */
const SETTLE_MS = 6_000;

interface Start {
  readonly listeningMs: number;
  /** Processor time until it has settled. */
  readonly processorMs: number;
  readonly memory: TreeMemory;
}

export async function restRows(context: BenchContext, program: string): Promise<Row[]> {
  return [
    ...await startRows(context, program),
    await idleClientsRow(context, program),
    await downloadRow(context, program),
  ];
}

/** A row about one value of each side. */
function figureRow({ name, unit, digits = 0, measured, control, details = {} }: {
  readonly name: string;
  readonly unit: string;
  readonly digits?: number;
  readonly measured: number;
  readonly control: number;
  readonly details?: Record<string, unknown>;
}): Row {
  const text = (value: number) => `${value.toFixed(digits)} ${unit}`;
  const ratio = measured / control;
  return { name, measured: text(measured), control: text(control), ratio, target: null, details };
}

async function startRows(context: BenchContext, program: string): Promise<Row[]> {
  const dataDir = context.folder();
  const options = { program, dataDir: context.folder() };
  await PocketBase.prepare(context, options);
  const ours: Start[] = [];
  const theirs: Start[] = [];
  for (let round = -1; round < roundsOf(context); round++) {
    const own = await startOf(context, (inner) => startSyncline(inner, dataDir));
    const other = await startOf(context, (inner) => PocketBase.start(inner, options));
    // The first round reads the files of both for the others.
    if (round < 0) continue;
    ours.push(own);
    theirs.push(other);
  }
  const row = (name: string, unit: string, value: (start: Start) => number): Row =>
    figureRow({
      ...{ name, unit, measured: median(ours.map(value)), control: median(theirs.map(value)) },
      details: { ours, theirs },
    });
  return [
    row("from the command to listening", "ms", ({ listeningMs }) => listeningMs),
    row("processor time of a start, 6 s later", "ms", ({ processorMs }) => processorMs),
    row("memory, idle, 6 s after the start", "MB", ({ memory }) => memory.bytes / 1e6),
  ];
}

async function startOf(
  context: BenchContext,
  start: (inner: BenchContext) => Promise<ServerProcess | PocketBase>,
): Promise<Start> {
  await using inner = context.inner();
  const startedAt = performance.now();
  const server = await start(inner);
  const listeningMs = performance.now() - startedAt;
  await pause(SETTLE_MS);
  const { pid } = server;
  const result = {
    listeningMs,
    processorMs: await treeTimeUs(pid) / 1_000,
    memory: await memoryByProcess(pid),
  };
  await server.stop();
  return result;
}

/** Each client is subscribed to a document of its own. */
async function idleClientsRow(outer: BenchContext, program: string): Promise<Row> {
  await using context = outer.inner();
  const { syncline, pocketBase } = await startPair(context, { program, rows: CLIENTS });
  const load = context.load();
  await load.run("openAudience", {
    ...{
      name: "syncline",
      port: syncline.port,
      path: "/api/sync",
      triggerPath: "/api/sync",
      sockets: CLIENTS,
    },
    subscribe: { udfPath: "rows:get", args: '{"number":{n}}', perSocket: 1 },
  });
  await load.run("openEventAudience", {
    ...{ name: "pocketBase", port: pocketBase.port, triggerPath: `${ROWS_PATH}/${rowId(0)}` },
    topics: Array.from({ length: CLIENTS }, (_, number) => `rows/${rowId(number)}`),
  });
  await pause(SETTLE_MS);
  const [measured, control] = [await treeMemory(syncline.pid), await treeMemory(pocketBase.pid)];
  const name = `memory, ${CLIENTS} idle clients with a subscription each`;
  return figureRow({ name, unit: "MB", measured: measured / 1e6, control: control / 1e6 });
}

/** Syncline's single file contains the runtime, compressed. PocketBase's program is compressed here. */
async function downloadRow(context: BenchContext, program: string): Promise<Row> {
  const file = join(context.folder(), "syncline");
  const { success, stderr } = await new Deno.Command("deno", {
    args: ["task", "--quiet", "build:single", file],
    cwd: projectDir,
    stdin: "null",
    stdout: "null",
  }).output();
  if (!success) throw new Error(`build:single failed: ${new TextDecoder().decode(stderr).slice(-500)}`);
  const { size } = await Deno.stat(file);
  const compressed = await promisify(gzip)(await Deno.readFile(program), { level: 9 });
  const name = "size of the download, compressed";
  return figureRow({ name, unit: "MB", digits: 1, measured: size / 1e6, control: compressed.length / 1e6 });
}
