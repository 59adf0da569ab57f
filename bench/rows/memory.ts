/** Memory of all processes of a server: idle, with idle sockets, and with a large database. */
import { type BenchContext, benchFunctions } from "../context.ts";
import { pause } from "../../tests/support/waiting.ts";
import { type TreeMemory, treeMemory } from "../support/cost.ts";
import { seedRows } from "../support/seed.ts";
import { median } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const MB = 1e6;
const SOCKETS = 2000;
/** Time for the runtime to collect garbage. */
const SETTLE_MS = 12_000;
const SAMPLES = 5;
const DOCUMENT_CHARS = 10_000;

/** Waits, then returns the median of several samples. */
async function settledMemory(pid: number): Promise<TreeMemory> {
  await pause(SETTLE_MS);
  const samples: [TreeMemory, ...TreeMemory[]] = [await treeMemory(pid)];
  while (samples.length < SAMPLES) {
    await pause(200);
    samples.push(await treeMemory(pid));
  }
  const middle = median(samples.map(({ bytes }) => bytes));
  return samples.find(({ bytes }) => bytes === middle) ?? samples[0];
}

function megabytes({ bytes }: TreeMemory): string {
  return `${(bytes / MB).toFixed(1)} MB`;
}

export async function memoryRows(context: BenchContext): Promise<Row[]> {
  const server = await context.server(benchFunctions);
  const { pid, port } = server;
  const load = context.load();
  const idle = await settledMemory(pid);
  await seedRows(server, { count: 1, chars: 20 });
  await server.call("query", "rows:get", { number: 0 });
  const used = await settledMemory(pid);

  const subscribe = { udfPath: "rows:get", args: '{"number":0}', perSocket: 1 };
  await load.run("openSubscribers", { name: "first", port, sockets: SOCKETS, subscribe });
  const first = await settledMemory(pid);
  await load.run("openSubscribers", { name: "second", port, sockets: SOCKETS, subscribe });
  const second = await settledMemory(pid);
  await load.run("closeSubscribers", { name: "first" });
  await load.run("closeSubscribers", { name: "second" });
  const perSocketKiB = (more: TreeMemory, less: TreeMemory) => (more.bytes - less.bytes) / SOCKETS / 1024;

  const megabytesStored = context.full ? 2000 : 200;
  const dataDir = context.folder();
  {
    await using inner = context.inner();
    const seeded = await inner.server(benchFunctions, { dataDir });
    await seedRows(seeded, { count: megabytesStored * MB / DOCUMENT_CHARS, chars: DOCUMENT_CHARS });
  }
  const large = await settledMemory((await context.server(benchFunctions, { dataDir })).pid);

  return [
    {
      name: "memory, idle server",
      measured: `${megabytes(idle)} (${idle.byProcess})`,
      control: "",
      ratio: idle.bytes / MB,
      target: { atMost: 200 },
      details: { idle, used },
    },
    {
      name: `memory, each further idle socket (${SOCKETS} more)`,
      measured: `${perSocketKiB(second, first).toFixed(1)} KiB`,
      control: `first ${SOCKETS}: ${perSocketKiB(first, used).toFixed(1)} KiB each`,
      ratio: perSocketKiB(second, first),
      target: { atMost: 30 },
      details: { first, second },
    },
    {
      name: `memory, idle with ${megabytesStored} MB of documents: additional MB`,
      measured: `${megabytes(large)} (${large.byProcess})`,
      control: `${megabytes(idle)} empty`,
      ratio: (large.bytes - idle.bytes) / MB,
      target: { atMost: 50 },
      details: { large },
    },
  ];
}
