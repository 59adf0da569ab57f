/** A database brought to the newest state of a replica by a process of its own. */
import type { ReplicaFault } from "../replica_error.ts";
import type { FromProcess } from "../process/messages.ts";
import { ReplicaProcess } from "../process/replica_process.ts";
import type { TargetPlace } from "../target/open_target.ts";
import type { BringOptions, Brought } from "./bring.ts";

export interface BringJobOptions extends Pick<BringOptions, "dataDir" | "step"> {
  readonly target: TargetPlace;
  /** Ends it; what it was at is begun anew by the next. */
  readonly signal: AbortSignal;
}

/** Why a database could not be brought. */
export class BringError extends Error {
  override readonly name = "BringError";
  readonly fault: ReplicaFault | null;

  constructor(fault: ReplicaFault | null, message: string) {
    super(message);
    this.fault = fault;
  }
}

/** Throws a `BringError` with the reason. */
export async function bringInProcess({ signal, ...work }: BringJobOptions): Promise<Brought> {
  const answer = Promise.withResolvers<(FromProcess & { type: "Brought" })["result"]>();
  const process = await ReplicaProcess.start({ type: "Begin", work: "bring", ...work }, (message) => {
    if (message.type === "Brought") answer.resolve(message.result);
  });
  const kill = () => process.kill();
  signal.addEventListener("abort", kill, { once: true });
  if (signal.aborted) kill();
  void process.ended.then(() =>
    answer.resolve({
      ok: false,
      fault: null,
      message: "The process that did the work ended before it was done",
    })
  );
  const result = await answer.promise;
  await process.close(0);
  signal.removeEventListener("abort", kill);
  if (!result.ok) throw new BringError(result.fault, result.message);
  return result.brought;
}
