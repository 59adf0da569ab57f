/** A target in a folder whose user is killed at one of its operations: before it, amid a write, or before the answer. */
import { basename, dirname, join } from "node:path";
import type { ReplicaTarget } from "../../../mod/ops/replication/mod.ts";
import { parseName } from "../../../mod/ops/replication/names.ts";

/** Operations of a target, without "place" and closing. */
type Operation = Exclude<Extract<keyof ReplicaTarget, string>, "place">;

export type Moment = "before" | "amid" | "after";

/** Thrown by the operation at which the process is killed, and by all later ones. */
export class Killed extends Error {}

/** When one user of a target is killed. */
export interface Death {
  readonly moment: Moment;
  /** Whether it is at this operation, such as "put segment". Asked before each. */
  readonly isAt: (step: string) => boolean;
}

/** A user of a target, who dies once. */
export class Mortal {
  readonly #death: Death | null;
  /** At what it died; `null` while it lives. */
  diedAt: string | null = null;

  /** `null`: it lives on. */
  constructor(death: Death | null) {
    this.#death = death;
  }

  /** Call before each operation. Returns when the process dies in it; `null` if it does not. */
  begin(operation: Operation, name: string): Moment | null {
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
export function dyingTarget(target: ReplicaTarget, user: () => Mortal): ReplicaTarget {
  const doing = async <Value>(
    { operation, name }: { readonly operation: Operation; readonly name: string },
    run: () => Promise<Value>,
  ): Promise<Value> => {
    const moment = user().begin(operation, name);
    if (moment === null) return await run();
    if (moment === "after") await run();
    if (moment === "amid") await leaveHalf(target.location, name);
    throw new Killed(`Killed ${moment} "${operation}"`);
  };
  return {
    location: target.location,
    async *list(begin) {
      yield* await doing({ operation: "list", name: begin }, () => Array.fromAsync(target.list(begin)));
    },
    read: (name) => doing({ operation: "read", name }, () => target.read(name)),
    stream: (name) => doing({ operation: "stream", name }, () => target.stream(name)),
    download: (name, path) => doing({ operation: "download", name }, () => target.download(name, path)),
    put: (name, bytes) => doing({ operation: "put", name }, () => target.put(name, bytes)),
    upload: (name, path) => doing({ operation: "upload", name }, () => target.upload(name, path)),
    create: (name, bytes) => doing({ operation: "create", name }, () => target.create(name, bytes)),
    remove: (name) => doing({ operation: "remove", name }, () => target.remove(name)),
    removeLeftovers: (at) =>
      doing({ operation: "removeLeftovers", name: "" }, () => target.removeLeftovers(at)),
    [Symbol.asyncDispose]: () => target[Symbol.asyncDispose](),
  };
}

/** Leaves the partial file of an interrupted write. */
async function leaveHalf(place: string, name: string): Promise<void> {
  const folder = dirname(join(place, name));
  await Deno.mkdir(folder, { recursive: true });
  await Deno.writeTextFile(join(folder, `.${basename(name)}.0123456789ab.partial`), "half of i");
}
