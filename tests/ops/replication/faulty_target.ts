/** Wrappers of a real target that inject faults or kill the process that uses it. */
import type { ObjectStore } from "../../../mod/kit/locations/object_store.ts";
import type { TargetObject } from "../../../mod/ops/replication/replica_target.ts";

export type Operation = "list" | "head" | "get" | "put" | "putFile" | "delete" | "removeUnfinished";

const OPERATIONS: ReadonlySet<unknown> = new Set<Operation>([
  "list",
  "head",
  "get",
  "put",
  "putFile",
  "delete",
  "removeUnfinished",
]);

/** Runs each operation of a target through `around`. */
export function wrappedTarget(
  target: ObjectStore,
  around: <Value>(operation: Operation, name: string, run: () => Promise<Value>) => Promise<Value>,
): ObjectStore {
  return new Proxy(target, {
    get(object, key) {
      const member: unknown = Reflect.get(object, key);
      if (typeof member !== "function") return member;
      if (!OPERATIONS.has(key)) return member.bind(object);
      if (key === "list") {
        return async function* (prefix: string) {
          yield* await around("list", prefix, () => Array.fromAsync(object.list(prefix)));
        };
      }
      return (name: string, ...more: unknown[]) =>
        around(key as Operation, name, () => member.call(object, name, ...more));
    },
  });
}

export interface Faults {
  /** Called before each operation. If it throws, the operation fails with its error. */
  before?: (operation: Operation, name: string) => void | Promise<void>;
  /** Returns the objects that a listing contains. */
  listed?: (objects: readonly TargetObject[]) => readonly TargetObject[];
}

/** A target with temporary faults. */
export function faultyTarget(target: ObjectStore, faults: Faults): ObjectStore {
  return wrappedTarget(target, async (operation, name, run) => {
    await faults.before?.(operation, name);
    const result = await run();
    if (operation !== "list" || faults.listed === undefined) return result;
    return faults.listed(result as readonly TargetObject[]) as typeof result;
  });
}
