/** A target in a folder whose process is killed at an operation: before it, during a write, or before the answer. */
import { basename, dirname, join } from "node:path";
import type { ObjectStore } from "../../../mod/kit/locations/object_store.ts";
import { parseName } from "../../../mod/ops/replication/names.ts";
import { type Operation, wrappedTarget } from "./faulty_target.ts";

export type KillTime = "before" | "amid" | "after";

/** Thrown by the operation at which the process is killed, and by all later ones. */
export class Killed extends Error {}

/** When one user of a target is killed. */
export interface Death {
  readonly moment: KillTime;
  /** Returns whether to kill at this operation, such as "put segment". Called before each. */
  readonly isAt: (step: string) => boolean;
}

/** A process with a target, killed once. */
export class KillableProcess {
  readonly #death: Death | null;
  /** The step at which it was killed; `null` while it runs. */
  diedAt: string | null = null;

  /** `null`: it lives on. */
  constructor(death: Death | null) {
    this.#death = death;
  }

  /** Call before each operation. Returns when the process dies in it; `null` if it does not. */
  begin(operation: Operation, name: string): KillTime | null {
    if (this.diedAt !== null) throw new Killed("It is dead");
    const step = `${operation} ${objectOf(name)}`;
    if (this.#death?.isAt(step) !== true) return null;
    this.diedAt = step;
    return this.#death.moment;
  }
}

function objectOf(name: string): string {
  const parsed = parseName(name);
  if (parsed?.kind === "snapshot") return "snapshot";
  if (parsed?.kind === "segment") return parsed.level === 0 ? "segment" : "merged segment";
  if (name.endsWith("generation.json")) return "generation";
  if (name.startsWith("owners/")) return "claim";
  return name.startsWith("generations/") ? "generations" : "place";
}

/** `user`: returns the current user of the target. */
export function dyingTarget(target: ObjectStore, user: () => KillableProcess): ObjectStore {
  return wrappedTarget(target, async (operation, name, run) => {
    const moment = user().begin(operation, name);
    if (moment === null) return await run();
    if (moment === "after") await run();
    if (moment === "amid") await leaveHalf(target.location, name);
    throw new Killed(`Killed ${moment} "${operation}"`);
  });
}

/** Writes the partial file of an interrupted write. */
async function leaveHalf(place: string, name: string): Promise<void> {
  const folder = dirname(join(place, name));
  await Deno.mkdir(folder, { recursive: true });
  await Deno.writeTextFile(join(folder, `.${basename(name)}.0123456789ab.partial`), "half of i");
}
