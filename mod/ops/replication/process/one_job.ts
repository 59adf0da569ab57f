/** A process that does one job, reports its result and exits. */
import type { Begin, FromProcess } from "./messages.ts";
import { ReplicaProcess } from "./replica_process.ts";

/** Returned when the process exits without a result. */
export interface LostJob {
  readonly ok: false;
  readonly fault: null;
  readonly message: string;
}

export interface OneJobOptions<Result> {
  /** Ends the process. */
  readonly signal: AbortSignal;
  readonly resultOf: (message: FromProcess) => Result | undefined;
}

export async function oneJob<Result>(
  begin: Begin,
  { signal, resultOf }: OneJobOptions<Result>,
): Promise<Result | LostJob> {
  const answer = Promise.withResolvers<Result | LostJob>();
  const process = await ReplicaProcess.start(begin, (message) => {
    const result = resultOf(message);
    if (result !== undefined) answer.resolve(result);
  });
  const kill = () => process.kill();
  signal.addEventListener("abort", kill, { once: true });
  if (signal.aborted) kill();
  const message = "The process exited before it had finished";
  void process.ended.then(() => answer.resolve({ ok: false, fault: null, message }));
  const result = await answer.promise;
  await process.close(0);
  signal.removeEventListener("abort", kill);
  return result;
}
