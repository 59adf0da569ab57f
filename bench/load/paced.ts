/** Transfers over HTTP at a rate that does not depend on the answers: what is late is sent as soon as it can be. */
import { RawHttp } from "../../tests/support/processes/raw_http.ts";
import { percentile } from "../support/statistics.ts";
import { transferArgs, type TransferWorkload } from "./transfers.ts";

export interface PacedLoop {
  readonly port: number;
  readonly perSecond: number;
  /** So many share the rate. */
  readonly connections: number;
  readonly durationMs: number;
  readonly workload: TransferWorkload;
}

/** How long the calls of a paced loop took, from when each was sent. */
export interface PacedTimes {
  readonly answered: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Gives the calls answered each second. Throws the first answer that is not a success. */
export async function pacedCalls(loop: PacedLoop): Promise<number> {
  return (await pacedTimes(loop)).perSecond;
}

export async function pacedTimes(
  { port, perSecond, connections, durationMs, workload }: PacedLoop,
): Promise<PacedTimes> {
  const nextArgs = transferArgs(workload);
  const everyMs = 1_000 * connections / perSecond;
  const startedAt = performance.now();
  const times: number[] = [];
  await Promise.all(Array.from({ length: connections }, async (_, place) => {
    using connection = await RawHttp.connect(port);
    let dueAt = startedAt + everyMs * place / connections;
    while (dueAt < startedAt + durationMs) {
      const pauseMs = dueAt - performance.now();
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
      const sentAt = performance.now();
      const { body } = await connection.post(
        "/api/mutation",
        `{"path":"transfer:transfer","args":${nextArgs()}}`,
      );
      if (!body.startsWith('{"status":"success"')) throw new Error(body);
      times.push(performance.now() - sentAt);
      dueAt += everyMs;
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
