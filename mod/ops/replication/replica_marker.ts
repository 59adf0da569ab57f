/** Marker, format and ownership of a target. */
import { z } from "zod";
import { claimOf, isGeneration, MARKER, ownerFile, OWNERS, PROBES } from "./names.ts";
import { ReplicaError } from "./replica_error.ts";
import type { ReplicaTarget } from "./target/replica_target.ts";

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

/**
 * Checks that a target is a replica; with `write`, makes an empty target one. Throws a `ReplicaError` for a target that has
 * other contents or a newer format, or that cannot be accessed.
 */
export async function openReplica(
  target: ReplicaTarget,
  { write }: { readonly write: boolean },
): Promise<void> {
  const bytes = await target.read(MARKER);
  if (bytes === null) {
    for await (const { name } of target.list("")) {
      // Another server may have made it a replica at this moment.
      if (name === MARKER) return await openReplica(target, { write });
      if (name.startsWith(PROBES)) continue;
      throw new ReplicaError(
        "target",
        `"${target.location}" is no replica: it contains other objects, such as "${name}". Choose an empty target`,
      );
    }
    if (!write) throw new ReplicaError("asked", `"${target.location}" is empty: there is no replica`);
    await target.create(MARKER, markerBytes());
    return;
  }
  const parsed = markerShape.safeParse(json(bytes));
  if (!parsed.success) {
    throw new ReplicaError("target", `"${target.location}" is no replica of Syncline: its marker is invalid`);
  }
  if (parsed.data.format > REPLICA_FORMAT) {
    throw new ReplicaError(
      "target",
      `A newer version of the server wrote the replica at "${target.location}" (format ${parsed.data.format}, this one ` +
        `knows ${REPLICA_FORMAT}): use the newer version`,
    );
  }
}

export function markerBytes(): Uint8Array<ArrayBuffer> {
  return encoded({ syncline: "replica", format: REPLICA_FORMAT });
}

/** Ownership of a target. The last server to claim it may ship, and the previous owner can detect that. */
export class Ownership {
  readonly #target: ReplicaTarget;
  readonly #claim: number;

  private constructor(target: ReplicaTarget, claim: number) {
    this.#target = target;
    this.#claim = claim;
  }

  /** Claims the target. Claims are numbered and written once, so one of two concurrent claims gets the number. */
  static async take(target: ReplicaTarget, claim: Claim): Promise<Ownership> {
    const claims: number[] = [];
    for await (const { name } of target.list(OWNERS)) {
      const number = claimOf(name);
      if (number !== null) claims.push(number);
    }
    let number = Math.max(0, ...claims) + 1;
    while (!await target.create(ownerFile(number), encoded(claim))) number++;
    for (const old of claims) if (old < number - OLD_CLAIMS_KEPT) await target.remove(ownerFile(old));
    return new Ownership(target, number);
  }

  /** Returns the claim of a newer owner; `null` while it is ours. */
  async lostTo(): Promise<Claim | null> {
    const bytes = await this.#target.read(ownerFile(this.#claim + 1));
    if (bytes === null) return null;
    const parsed = claimShape.safeParse(json(bytes));
    return parsed.success ? parsed.data : { instance: "", host: "an unknown machine", since: "" };
  }
}

/** Number of old claims that are retained, so that an old owner finds the next claim. */
const OLD_CLAIMS_KEPT = 100;

const generationShape = z.object({
  format: z.literal(1),
  generation: z.string().refine(isGeneration),
  reason: z.string(),
  startedAt: z.iso.datetime(),
  /** The commit that it starts after. */
  ts: z.int(),
});

export type GenerationFacts = z.infer<typeof generationShape>;

export function generationBytes(facts: Omit<GenerationFacts, "format">): Uint8Array<ArrayBuffer> {
  return encoded({ format: 1, ...facts });
}

/** Returns `null` for an invalid claim. */
export function parseGeneration(bytes: Uint8Array<ArrayBuffer> | null): GenerationFacts | null {
  const parsed = generationShape.safeParse(bytes === null ? null : json(bytes));
  return parsed.success ? parsed.data : null;
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
