/** Resources of servers without load: start, idle memory, memory with idle clients, and size of the download. */
import { join } from "node:path";
import { gzip } from "node:zlib";
import { promisify } from "node:util";
import { projectDir } from "../../../tests/support/processes/child.ts";
import type { ServerProcess } from "../../../tests/support/processes/server_process.ts";
import { pause } from "../../../tests/support/waiting.ts";
import type { BenchContext } from "../../context.ts";
import { type TreeMemory, treeMemory, treeTimeUs } from "../../support/cost.ts";
import { roundsOf } from "../../support/rounds.ts";
import { median } from "../../support/statistics.ts";
import type { Row } from "../../table.ts";
import { startPair, startSyncline } from "./pair.ts";
import { PocketBase, rowId, ROWS_PATH } from "./pocketbase.ts";

const CLIENTS = 1_000;
/** Time for the runtime to collect garbage. */
const SETTLE_MS = 6_000;

interface Start {
  readonly listeningMs: number;
  /** Processor time until `SETTLE_MS` after the start. */
  readonly processorMs: number;
  readonly memory: TreeMemory;
}

export async function resourceRows(context: BenchContext, program: string): Promise<Row[]> {
  return [
    ...await startRows(context, program),
    await idleClientsRow(context, program),
    await downloadRow(context, program),
  ];
}

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
  for (let round = 0; round <= roundsOf(context); round++) {
    const ownStart = await measureStart(context, (inner) => startSyncline(inner, dataDir));
    const otherStart = await measureStart(context, (inner) => PocketBase.start(inner, options));
    // The first round reads the files into the cache of the operating system.
    if (round === 0) continue;
    ours.push(ownStart);
    theirs.push(otherStart);
  }
  const row = (name: string, unit: string, value: (start: Start) => number): Row =>
    figureRow({
      ...{ name, unit, measured: median(ours.map(value)), control: median(theirs.map(value)) },
      details: { ours, theirs },
    });
  return [
    row("start: command to listening", "ms", ({ listeningMs }) => listeningMs),
    row("start: processor time until 6 s later", "ms", ({ processorMs }) => processorMs),
    row("memory, idle, 6 s after the start", "MB", ({ memory }) => memory.bytes / 1e6),
  ];
}

async function measureStart(
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
    memory: await treeMemory(pid),
  };
  await server.stop();
  return result;
}

/** Each client subscribes to a different document. */
async function idleClientsRow(outer: BenchContext, program: string): Promise<Row> {
  await using context = outer.inner();
  const { syncline, pocketBase } = await startPair(context, { program, rows: CLIENTS });
  const load = context.load();
  await load.run("openSubscribers", {
    ...{ name: "syncline", port: syncline.port, sockets: CLIENTS },
    subscribe: { udfPath: "rows:get", args: '{"number":{n}}', perSocket: 1 },
  });
  await load.run("openEventSubscribers", {
    ...{ name: "pocketBase", port: pocketBase.port, triggerPath: `${ROWS_PATH}/${rowId(0)}` },
    topics: Array.from({ length: CLIENTS }, (_, number) => `rows/${rowId(number)}`),
  });
  await pause(SETTLE_MS);
  return figureRow({
    ...{ name: `memory, ${CLIENTS} idle clients with a subscription each`, unit: "MB" },
    measured: (await treeMemory(syncline.pid)).bytes / 1e6,
    control: (await treeMemory(pocketBase.pid)).bytes / 1e6,
  });
}

/** Syncline's single file is already compressed. PocketBase's executable is compressed here. */
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
