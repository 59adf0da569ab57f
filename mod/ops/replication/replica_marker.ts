/** Marker, format and ownership of a target. */
import { z } from "zod";
import { LocationError, type ObjectReader, type ObjectStore } from "../../kit/locations/object_store.ts";
import { claimOf, MARKER, ownerFile, OWNERS, PROBES } from "./names.ts";
import { readTarget } from "./replica_target.ts";

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
