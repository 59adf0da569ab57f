/** Transfers over HTTP at a rate that does not depend on the answers: what is late is sent as soon as it can be. */
import { RawHttp } from "../support/raw_http.ts";
import { transferArgs, type TransferWorkload } from "./transfers.ts";

export interface PacedLoop {
  readonly port: number;
  readonly perSecond: number;
  /** So many share the rate. */
  readonly connections: number;
  readonly durationMs: number;
  readonly workload: TransferWorkload;
}

/** Gives the calls answered each second. Throws the first answer that is not a success. */
export async function pacedCalls(
  { port, perSecond, connections, durationMs, workload }: PacedLoop,
): Promise<number> {
  const nextArgs = transferArgs(workload);
  const everyMs = 1_000 * connections / perSecond;
  const startedAt = performance.now();
  let answered = 0;
  await Promise.all(Array.from({ length: connections }, async (_, place) => {
    using connection = await RawHttp.connect(port);
    let dueAt = startedAt + everyMs * place / connections;
    while (dueAt < startedAt + durationMs) {
      const pauseMs = dueAt - performance.now();
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
      const { body } = await connection.post(
        "/api/mutation",
        `{"path":"transfer:transfer","args":${nextArgs()}}`,
      );
      if (!body.startsWith('{"status":"success"')) throw new Error(body);
      answered++;
      dueAt += everyMs;
    }
  }));
  return answered / ((performance.now() - startedAt) / 1_000);
}
