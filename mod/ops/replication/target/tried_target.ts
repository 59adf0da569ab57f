/** Whether a replica can be kept at a target: with an object of its own, which no replica reads. */
import { randomBytes } from "node:crypto";
import type { LocationProbe } from "../../../kit/locations/location_probe.ts";
import { triedFile } from "../names.ts";
import { openTarget, placeText, type TargetPlace } from "./open_target.ts";
import type { ReplicaTarget } from "./replica_target.ts";

/** Opens it for each step: whoever ships there has a connection of their own. */
export function triedTarget(place: TargetPlace): LocationProbe {
  const name = triedFile(Date.now(), randomBytes(16).toString("hex"));
  const at = async <Result>(run: (target: ReplicaTarget) => Promise<Result>): Promise<Result> => {
    await using target = await openTarget(place, { make: false });
    return await run(target);
  };
  return {
    place: placeText(place),
    list: () =>
      at(async (target) => {
        for await (const _ of target.list("")) return;
      }),
    write: (bytes) => at((target) => target.put(name, bytes)),
    read: () => at((target) => target.read(name)),
    remove: () => at((target) => target.remove(name)),
  };
}
