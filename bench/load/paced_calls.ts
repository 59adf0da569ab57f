/** Transfers over HTTP at a fixed rate. A delayed call is sent as soon as its connection is free. */
import { RawHttp } from "../../tests/support/processes/raw_http.ts";
import { pause } from "../../tests/support/waiting.ts";
import { percentile } from "../support/statistics.ts";
import { transferArgs, type TransferWorkload } from "./transfers.ts";

export interface PacedCallsOptions {
  readonly port: number;
  /** Rate of all connections. */
  readonly perSecond: number;
  readonly connections: number;
  readonly durationMs: number;
  readonly workload: TransferWorkload;
}

export interface PacedCallsResult {
  readonly answered: number;
  readonly perSecond: number;
  /** Latencies from the time each call was sent. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Throws if a call fails. */
export async function pacedCalls(
  { port, perSecond, connections, durationMs, workload }: PacedCallsOptions,
): Promise<PacedCallsResult> {
  const nextArgs = transferArgs(workload);
  const intervalMs = 1_000 * connections / perSecond;
  const startedAt = performance.now();
  const times: number[] = [];
  await Promise.all(Array.from({ length: connections }, async (_, index) => {
    using connection = await RawHttp.connect(port);
    let dueAt = startedAt + intervalMs * index / connections;
    while (dueAt < startedAt + durationMs) {
      const pauseMs = dueAt - performance.now();
      if (pauseMs > 0) await pause(pauseMs);
      const sentAt = performance.now();
      const { body } = await connection.post(
        "/api/mutation",
        `{"path":"transfer:transfer","args":${nextArgs()}}`,
      );
      if (!body.startsWith('{"status":"success"')) throw new Error(body);
      times.push(performance.now() - sentAt);
      dueAt += intervalMs;
    }
  }));
  const seconds = (performance.now() - startedAt) / 1_000;
  return {
    answered: times.length,
    perSecond: times.length / seconds,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
  };
}
