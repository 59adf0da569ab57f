/**
 * The target of a replica: an object store in a folder or a bucket, or a log that is read like one. A marker identifies it,
 * and claims determine the server that ships to it.
 */
import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { LocationProbe } from "../../kit/locations/location_probe.ts";
import {
  LocationError,
  locationText,
  type ObjectInfo,
  type ObjectLocation,
  type ObjectReader,
  type ObjectStore,
  readObject,
} from "../../kit/locations/object_store.ts";
import { openStore } from "../../kit/locations/open_store.ts";
import { opsLimits, replicationLimits } from "../limits.ts";
import { claimOf, GENERATIONS, MARKER, ownerFile, OWNERS, probedAt, probeFile, PROBES } from "./names.ts";

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

/** Raised when an older program could not read what a newer one wrote. */
export const REPLICA_FORMAT = 1;

const markerShape = z.object({ syncline: z.literal("replica"), format: z.int() });

const claimShape = z.object({
  /** Identifies one run of a server. */
  instance: z.string(),
  /** Address of the server, for display. */
  host: z.string(),
  since: z.iso.datetime(),
});

/** The server that ships to a target. */
export type Claim = z.infer<typeof claimShape>;

/** Throws a `LocationError` for a target that is empty, has other contents or a newer format, or cannot be accessed. */
export async function openReplica(target: ObjectReader): Promise<void> {
  if (await isReplica(target)) return;
  throw new LocationError("asked", `"${target.location}" is empty: there is no replica`);
}

/** The same, and makes an empty target a replica. */
export async function createReplica(target: ObjectStore): Promise<void> {
  if (!await isReplica(target)) await target.put(MARKER, markerBytes(), { ifAbsent: true });
}

/** Returns `false` for an empty target. */
async function isReplica(target: ObjectReader): Promise<boolean> {
  const bytes = await readTarget(target, MARKER);
  if (bytes === null) {
    for await (const { name } of target.list("")) {
      // Another server may have made it a replica at this moment.
      if (name === MARKER) return await isReplica(target);
      if (name.startsWith(PROBES)) continue;
      throw new LocationError(
        "target",
        `"${target.location}" is no replica: it contains other objects, such as "${name}". Choose an empty target`,
      );
    }
    return false;
  }
  const parsed = markerShape.safeParse(json(bytes));
  if (!parsed.success) {
    throw new LocationError(
      "target",
      `"${target.location}" is no replica of Syncline: its marker is invalid`,
    );
  }
  if (parsed.data.format > REPLICA_FORMAT) {
    throw new LocationError(
      "target",
      `A newer version of the server wrote the replica at "${target.location}" (format ${parsed.data.format}, this one ` +
        `knows ${REPLICA_FORMAT}): use the newer version`,
    );
  }
  return true;
}

export function markerBytes(): Uint8Array<ArrayBuffer> {
  return encoded({ syncline: "replica", format: REPLICA_FORMAT });
}

/** Ownership of a target. The last server to claim it may ship, and the previous owner can detect that. */
export class Ownership {
  readonly #target: ObjectStore;
  readonly #claim: number;

  private constructor(target: ObjectStore, claim: number) {
    this.#target = target;
    this.#claim = claim;
  }

  /** Claims the target. Claims are numbered and written once, so one of two concurrent claims gets the number. */
  static async take(target: ObjectStore, claim: Claim): Promise<Ownership> {
    const claims: number[] = [];
    for await (const { name } of target.list(OWNERS)) {
      const number = claimOf(name);
      if (number !== null) claims.push(number);
    }
    let number = Math.max(0, ...claims) + 1;
    while (!await target.put(ownerFile(number), encoded(claim), { ifAbsent: true })) number++;
    for (const old of claims) if (old < number - OLD_CLAIMS_KEPT) await target.delete(ownerFile(old));
    return new Ownership(target, number);
  }

  /** Returns the claim of a newer owner; `null` while it is ours. */
  async lostTo(): Promise<Claim | null> {
    const bytes = await readTarget(this.#target, ownerFile(this.#claim + 1));
    if (bytes === null) return null;
    const parsed = claimShape.safeParse(json(bytes));
    return parsed.success ? parsed.data : { instance: "", host: "an unknown machine", since: "" };
  }
}

/** Number of old claims that are retained, so that an old owner finds the next claim. */
const OLD_CLAIMS_KEPT = 100;

/** Start of a generation. */
export interface GenerationFacts {
  readonly generation: string;
  readonly reason: string;
  readonly startedAt: string;
  /** The commit that it starts after. */
  readonly ts: number;
}

export function generationBytes(facts: GenerationFacts): Uint8Array<ArrayBuffer> {
  return encoded({ format: 1, ...facts });
}

function encoded(value: object): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${JSON.stringify(value)}\n`);
}

/** Returns `undefined` for invalid JSON. */
function json(bytes: Uint8Array<ArrayBuffer>): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}
