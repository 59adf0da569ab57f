/** The target of a replica: an object store in a folder or a bucket, or a log that is read like one. */
import { randomBytes } from "node:crypto";
import type { LocationProbe } from "../../kit/locations/location_probe.ts";
import {
  locationText,
  type ObjectInfo,
  type ObjectLocation,
  type ObjectReader,
  type ObjectStore,
  readObject,
} from "../../kit/locations/object_store.ts";
import { openStore } from "../../kit/locations/open_store.ts";
import { opsLimits, replicationLimits } from "../limits.ts";
import { GENERATIONS, probedAt, probeFile, PROBES } from "./names.ts";

export type TargetObject = Pick<ObjectInfo, "name" | "size">;

/** A replica that can be restored from. */
export interface ReplicaReader extends ObjectReader, AsyncDisposable {
  /** Whether old objects may be removed while they are read, without being merged into others. */
  readonly isTrimmed?: boolean;
}

export interface TargetOptions {
  readonly signal?: AbortSignal;
  /** Whether a missing folder is created. */
  readonly make: boolean;
}

/** Opens a target. Throws a `LocationError`. */
export async function openTarget(location: ObjectLocation, options: TargetOptions): Promise<ObjectStore> {
  return await openStore(location, {
    requestMs: replicationLimits.requestMs,
    attempts: replicationLimits.requestAttempts,
    partBytes: opsLimits.bucketPartBytes,
    ...options,
  });
}

/** Reads an object of bounded size; `null` if there is none. */
export async function readTarget(
  target: Pick<ObjectReader, "get">,
  name: string,
): Promise<Uint8Array<ArrayBuffer> | null> {
  return await readObject(target, name, replicationLimits.objectBytesMax);
}

/** Tests a location with an object that no replica reads. */
export function targetProbe(location: ObjectLocation): LocationProbe {
  return {
    place: locationText(location),
    name: probeFile(Date.now(), randomBytes(16).toString("hex")),
    open: () => openStore(location),
  };
}

/**
 * Removes leftovers of killed processes and of location tests that are old at a time, ms since the epoch, which must not be
 * ahead of real time even if the machine's clock is.
 */
export async function removeLeftovers(target: ObjectStore, at: number): Promise<void> {
  // Parts of unfinished uploads cost money and appear in no listing of objects. They remain if the key or the service does
  // not permit listing them.
  const { partialKeptMs, uploadKeptMs } = replicationLimits;
  const before = at - (target.kind === "folder" ? partialKeptMs : uploadKeptMs);
  await target.removeUnfinished(GENERATIONS, { before }).catch(() => {});
  await removeTestObjects(target, at).catch(() => {});
}

async function removeTestObjects(target: ObjectStore, at: number): Promise<void> {
  let removed = 0;
  for await (const { name } of target.list(PROBES)) {
    if (probedAt(name) >= at - replicationLimits.probeKeptMs) continue;
    if (removed++ === replicationLimits.probesRemovedMax) return;
    await target.delete(name);
  }
}
