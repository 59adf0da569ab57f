/** Uses a server for a given time: calls at a fixed rate and repeated work. Counts failures by message. */
import { join } from "node:path";
import { Child } from "../../tests/support/processes/child.ts";
import { RawHttp } from "../../tests/support/processes/raw_http.ts";
import type { ServerProcess } from "../../tests/support/processes/server_process.ts";
import { pause } from "../../tests/support/waiting.ts";
import { print } from "./print.ts";
import { percentile } from "./statistics.ts";

const CONNECTIONS = 50;

export interface UsageCall {
  readonly kind: "query" | "mutation";
  readonly path: string;
  readonly args: Record<string, unknown>;
}

export class Usage {
  readonly server: ServerProcess;
  /** Number of failures by message. */
  readonly #failures = new Map<string, number>();
  /** Each request has a different client address, so that rate limits do not apply. */
  #addresses = 0;

  constructor(server: ServerProcess) {
    this.server = server;
  }

  addFailure(error: unknown): void {
    const message = messageOf(error);
    this.#failures.set(message, (this.#failures.get(message) ?? 0) + 1);
  }

  /** Prints the failures. If there are any, the process exits with 1. */
  reportFailures(): void {
    for (const [message, count] of this.#failures) print(`FAILED ${count} times: ${message}`);
    if (this.#failures.size > 0) Deno.exitCode = 1;
  }

  /** Repeats work until `endAt` with pauses in between. Returns its durations in milliseconds. */
  async repeat(
    work: () => Promise<unknown>,
    { endAt, pauseMs = 500 }: { readonly endAt: number; readonly pauseMs?: number },
  ): Promise<number[]> {
    const times: number[] = [];
    while (performance.now() < endAt) {
      const startedAt = performance.now();
      await work().catch((error) => this.addFailure(error));
      times.push(performance.now() - startedAt);
      await pause(pauseMs);
    }
    return times;
  }

  /** Posts JSON on a new connection and returns the response body. Throws if the status is not 200. */
  async post(path: string, body: object): Promise<string> {
    using connection = await RawHttp.connect(this.server.port);
    const number = ++this.#addresses;
    const headers = { "X-Forwarded-For": `10.${number >> 16}.${number >> 8 & 255}.${number & 255}` };
    const answer = await connection.post(path, JSON.stringify(body), { headers });
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${answer.body.slice(0, 200)}`);
    return answer.body;
  }

  /** Sends calls at a fixed rate until `endAt`. Returns their latencies in milliseconds from the time each was due. */
  async pacedCalls(
    next: (number: number) => UsageCall,
    { perSecond, endAt }: { readonly perSecond: number; readonly endAt: number },
  ): Promise<number[]> {
    const intervalMs = 1000 * CONNECTIONS / perSecond;
    const all = await Promise.all(Array.from({ length: CONNECTIONS }, async (_, index) => {
      const times: number[] = [];
      let connection = await RawHttp.connect(this.server.port);
      let dueAt = performance.now() + intervalMs * index / CONNECTIONS;
      for (let round = 0; performance.now() < endAt; round++) {
        await pause(Math.max(0, dueAt - performance.now()));
        const { kind, ...call } = next(round * CONNECTIONS + index);
        try {
          const answer = await connection.post(`/api/${kind}`, JSON.stringify(call));
          if (answer.status !== 200) throw new Error(`${answer.status} ${answer.body.slice(0, 200)}`);
        } catch (error) {
          this.addFailure(`${kind}: ${messageOf(error)}`);
          connection[Symbol.dispose]();
          connection = await RawHttp.connect(this.server.port).catch(() => {
            throw new Error(`The server has stopped: ${this.server.lastOutput.slice(-1_000)}`);
          });
        }
        times.push(performance.now() - dueAt);
        dueAt += intervalMs;
      }
      connection[Symbol.dispose]();
      return times;
    }));
    return all.flat();
  }

  /** Backs up the data folder of the server and removes the archive. `starter` is a prefix of the command. */
  async backup(dataDir: string, starter: readonly string[] = []): Promise<void> {
    const out = join(dataDir, "..", `${crypto.randomUUID()}.tar.zst`);
    // The options of `deno task backup`.
    const heap = "--v8-flags=--max-old-space-size=256,--max-semi-space-size=1";
    const args = ["run", "--no-prompt", heap, "-P=backup", "cli.ts", "backup"];
    await using child = new Child({ args: [...args, "--data", dataDir, "--out", out], starter });
    const { code } = await child.exited;
    if (code !== 0) throw new Error(`backup: ${child.lastOutput.slice(-300)}`);
    await Deno.remove(out);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Formats the number and percentiles of durations. */
export function summary(times: readonly number[]): string {
  if (times.length === 0) return "none";
  const ms = (p: number) => percentile(times, p).toFixed(0);
  return `${times.length}, p50 ${ms(0.5)} ms, p99 ${ms(0.99)} ms`;
}
