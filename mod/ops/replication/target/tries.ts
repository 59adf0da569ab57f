/** What tries of a place have left there, because their servers were killed or could not remove it. */
import { replicationLimits } from "../../limits.ts";
import { TRIED, triedAt } from "../names.ts";
import type { ReplicaTarget } from "./replica_target.ts";

/** Removes what is old at a time, ms since the epoch; of very many some at a time. */
export async function removeOldTries(
  target: Pick<ReplicaTarget, "list" | "remove">,
  at: number,
): Promise<void> {
  let removed = 0;
  for await (const { name } of target.list(TRIED)) {
    if (triedAt(name) >= at - replicationLimits.triedKeptMs) continue;
    if (removed++ === replicationLimits.triesRemovedMax) return;
    await target.remove(name);
  }
}
