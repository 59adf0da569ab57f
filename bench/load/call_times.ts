/** Durations of calls over HTTP, one after the other. */
import { RawHttp } from "../../tests/support/processes/raw_http.ts";

export interface CallTimesOptions {
  readonly port: number;
  readonly path: string;
  /** JSON. */
  readonly body: string;
  readonly count: number;
}

/** Returns the milliseconds of each call. Throws if a call fails. */
export async function callTimes({ port, path, body, count }: CallTimesOptions): Promise<number[]> {
  using connection = await RawHttp.connect(port);
  const times: number[] = [];
  for (let call = 0; call < count; call++) {
    const startedAt = performance.now();
    const answer = await connection.post(path, body);
    times.push(performance.now() - startedAt);
    if (!answer.body.startsWith('{"status":"success"')) throw new Error(answer.body);
  }
  return times;
}
