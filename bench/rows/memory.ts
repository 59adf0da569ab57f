/** Proportional set size of all processes of an idle server, of idle sockets, and with a large database. */
import { type BenchContext, benchFunctions, pause } from "../context.ts";
import { processTree, proportionalSetSize } from "../../tests/support/processes/process_tree.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";
import { median } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const MB = 1e6;
const SOCKETS = 2000;
/** Long enough for the runtime to collect what the opening of sockets left behind. */
const SETTLE_MS = 12_000;
const DOCUMENT_CHARS = 10_000;

interface Memory {
  readonly total: number;
  /** Main first, then its children in the order they were started. */
  readonly processes: number[];
}

/** Median of several looks at all processes of a server, after it had time to settle. */
async function memoryOf(server: ServerProcess): Promise<Memory> {
  await pause(SETTLE_MS);
  const looks: Memory[] = [];
  for (let look = 0; look < 5; look++) {
    const pids = await processTree(server.pid);
    const processes = await Promise.all(pids.map(proportionalSetSize));
    looks.push({ processes, total: processes.reduce((sum, bytes) => sum + bytes, 0) });
    await pause(200);
  }
  const middle = median(looks.map((look) => look.total));
  const nearest = looks.toSorted((a, b) => Math.abs(a.total - middle) - Math.abs(b.total - middle))[0];
  if (nearest === undefined) throw new Error("The server was not looked at");
  return nearest;
}

function megabytes(bytes: number): string {
  return `${(bytes / MB).toFixed(1)} MB`;
}

function breakdown(memory: Memory): string {
  return memory.processes.map((bytes) => (bytes / MB).toFixed(0)).join(" + ");
}

export async function memoryRows(context: BenchContext): Promise<Row[]> {
  const server = await context.server(benchFunctions);
  const load = context.load();
  const idle = await memoryOf(server);
  await server.call("mutation", "rows:fill", { start: 0, count: 1, chars: 20 });
  await server.call("query", "rows:get", { number: 0 });
  const used = await memoryOf(server);

  const subscribe = { udfPath: "rows:get", args: '{"number":0}', perSocket: 1 };
  const audience = {
    port: server.port,
    path: "/api/sync",
    triggerPath: "/api/sync",
    sockets: SOCKETS,
    subscribe,
  };
  await load.run("openAudience", { ...audience, name: "first" });
  const first = await memoryOf(server);
  await load.run("openAudience", { ...audience, name: "second" });
  const second = await memoryOf(server);
  await load.run("closeAudience", { name: "first" });
  await load.run("closeAudience", { name: "second" });
  const perSocket = (second.total - first.total) / SOCKETS;

  const megabytesFilled = context.full ? 2000 : 200;
  const documents = megabytesFilled * MB / DOCUMENT_CHARS;
  const dataDir = context.folder();
  {
    await using filling = await context.inner().server(benchFunctions, dataDir);
    for (let start = 1; start < documents; start += 500) {
      await filling.call("mutation", "rows:fill", { start, count: 500, chars: DOCUMENT_CHARS });
    }
    await filling.stop();
  }
  const filled = await memoryOf(await context.server(benchFunctions, dataDir));

  return [
    {
      name: "memory, idle server",
      measured: `${megabytes(idle.total)} (${breakdown(idle)})`,
      control: "",
      ratio: idle.total / MB,
      target: { atMost: 200 },
      details: { idle, used },
    },
    {
      name: `memory, each further idle socket (${SOCKETS} more)`,
      measured: `${(perSocket / 1024).toFixed(1)} KiB`,
      control: `first ${SOCKETS}: ${((first.total - used.total) / SOCKETS / 1024).toFixed(1)} KiB each`,
      ratio: perSocket / 1024,
      target: { atMost: 30 },
      details: { first, second },
    },
    {
      name: `memory, idle with ${megabytesFilled} MB of documents, MB more`,
      measured: `${megabytes(filled.total)} (${breakdown(filled)})`,
      control: `${megabytes(idle.total)} empty`,
      ratio: (filled.total - idle.total) / MB,
      target: { atMost: 50 },
      details: { filled },
    },
  ];
}
