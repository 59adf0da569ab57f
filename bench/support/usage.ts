/** Use of a server for a given time: calls at a steady pace, and work that repeats. Failures are counted by kind. */
import { join } from "node:path";
import { Child } from "../../tests/support/processes/child.ts";
import { RawHttp } from "../../tests/support/processes/raw_http.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";
import { percentile } from "./statistics.ts";

const LANES = 50;

/** A call over HTTP. */
export interface UsageCall {
  readonly kind: "query" | "mutation";
  readonly path: string;
  readonly args: Record<string, unknown>;
}

/** Prints a line. */
export function print(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${text}\n`));
}

export class Usage {
  readonly server: ServerProcess;
  /** Number of failures by message. */
  readonly failures = new Map<string, number>();
  /** Each caller has its own address, because rate limits are not measured. */
  #addresses = 0;

  constructor(server: ServerProcess) {
    this.server = server;
  }

  failed(message: string): void {
    this.failures.set(message, (this.failures.get(message) ?? 0) + 1);
  }

  /** Repeats work until `endAt` with pauses in between. Returns its durations in ms. */
  async repeat(
    work: () => Promise<string | null>,
    { endAt, pauseMs = 500 }: { readonly endAt: number; readonly pauseMs?: number },
  ): Promise<number[]> {
    const times: number[] = [];
    while (performance.now() < endAt) {
      const since = performance.now();
      const failure = await work().catch((error) => error instanceof Error ? error.message : String(error));
      if (failure !== null) this.failed(failure);
      times.push(performance.now() - since);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    return times;
  }

  /** Posts JSON on a connection of its own. Returns the body of the answer; throws for all other statuses than 200. */
  async post(path: string, body: object): Promise<string> {
    using connection = await RawHttp.connect(this.server.port);
    const number = ++this.#addresses;
    const headers = { "X-Forwarded-For": `10.${number >> 16}.${number >> 8 & 255}.${number & 255}` };
    const answer = await connection.post(path, JSON.stringify(body), { headers });
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${answer.body.slice(0, 200)}`);
    return answer.body;
  }

  /** Makes calls at a steady pace, independent of their durations, which are returned in ms. */
  async steadyCalls(
    next: (number: number) => UsageCall,
    { perSecond, endAt }: { readonly perSecond: number; readonly endAt: number },
  ): Promise<number[]> {
    const everyMs = 1000 * LANES / perSecond;
    const all = await Promise.all(Array.from({ length: LANES }, async (_, lane) => {
      const times: number[] = [];
      let connection = await RawHttp.connect(this.server.port);
      let dueAt = performance.now() + everyMs * lane / LANES;
      for (let round = 0; performance.now() < endAt; round++) {
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueAt - performance.now())));
        const { kind, ...call } = next(round * LANES + lane);
        const failure = await callOn(connection, kind, call);
        if (failure !== null) {
          this.failed(`${kind}: ${failure}`);
          connection[Symbol.dispose]();
          connection = await RawHttp.connect(this.server.port).catch(() => {
            throw new Error(`The server is gone: ${this.server.lastOutput.slice(-1_000)}`);
          });
        }
        // A late call counts from when it was due.
        times.push(performance.now() - dueAt);
        dueAt += everyMs;
      }
      connection[Symbol.dispose]();
      return times;
    }));
    return all.flat();
  }

  /** Backs up the data folder of the server and removes the archive. `starter` is the command that starts the process. */
  async backup(dataDir: string, starter: readonly string[] = []): Promise<string | null> {
    const out = join(dataDir, "..", `${crypto.randomUUID()}.tar.zst`);
    const command = ["cli.ts", "backup", "--data", dataDir, "--out", out];
    // As `deno task backup` starts it.
    const heap = "--v8-flags=--max-old-space-size=256,--max-semi-space-size=1";
    const args = ["run", "--no-prompt", heap, "-P=backup", ...command];
    await using child = new Child({ args, starter });
    const { code } = await child.exited;
    if (code !== 0) return `backup: ${child.lastOutput.slice(-300)}`;
    await Deno.remove(out);
    return null;
  }
}

async function callOn(connection: RawHttp, kind: UsageCall["kind"], call: object): Promise<string | null> {
  try {
    const answer = await connection.post(`/api/${kind}`, JSON.stringify(call));
    return answer.status === 200 ? null : `${answer.status} ${answer.body.slice(0, 200)}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Number and percentiles of durations. */
export function durations(times: readonly number[]): string {
  if (times.length === 0) return "none";
  const ms = (share: number) => percentile([...times], share).toFixed(0);
  return `${times.length}, p50 ${ms(0.5)} ms, p99 ${ms(0.99)} ms`;
}
