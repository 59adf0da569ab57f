/** A wrapper of a real target with temporary faults. */
import type { ReplicaTarget } from "../../../mod/ops/replication/mod.ts";
import type { TargetObject } from "../../../mod/ops/replication/target/replica_target.ts";

export interface Faults {
  /** Called before each operation; what it throws is what the operation fails with. */
  before?: (operation: keyof ReplicaTarget, name: string) => void | Promise<void>;
  /** Returns the objects that a listing contains. */
  listed?: (objects: readonly TargetObject[]) => readonly TargetObject[];
}

/** Closes the target with itself. */
export function faultyTarget(target: ReplicaTarget, faults: Faults): ReplicaTarget {
  const before = async (operation: keyof ReplicaTarget, name: string) =>
    await faults.before?.(operation, name);
  return {
    location: target.location,
    async *list(begin) {
      await before("list", begin);
      const objects = await Array.fromAsync(target.list(begin));
      yield* faults.listed?.(objects) ?? objects;
    },
    read: async (name) => (await before("read", name), await target.read(name)),
    stream: async (name) => (await before("stream", name), await target.stream(name)),
    download: async (name, path) => (await before("download", name), await target.download(name, path)),
    put: async (name, bytes) => (await before("put", name), await target.put(name, bytes)),
    upload: async (name, path) => (await before("upload", name), await target.upload(name, path)),
    create: async (name, bytes) => (await before("create", name), await target.create(name, bytes)),
    remove: async (name) => (await before("remove", name), await target.remove(name)),
    removeLeftovers: async (at) => (await before("removeLeftovers", ""), await target.removeLeftovers(at)),
    [Symbol.asyncDispose]: () => target[Symbol.asyncDispose](),
  };
}
