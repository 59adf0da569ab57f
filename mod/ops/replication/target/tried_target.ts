/** Whether a replica can be kept at a target: with an object of its own, which no replica reads. */
import { randomBytes } from "node:crypto";
import type { LocationProbe } from "../../../kit/locations/location_probe.ts";
import { openStore } from "../../../kit/locations/open_store.ts";
import { triedFile } from "../names.ts";
import { placeText, type TargetPlace } from "./open_target.ts";

export function triedTarget(place: TargetPlace): LocationProbe {
  return {
    place: placeText(place),
    name: triedFile(Date.now(), randomBytes(16).toString("hex")),
    open: () => openStore(place),
  };
}
