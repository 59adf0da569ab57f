/** Gives up the isolate's permissions: first all but the app's folder, then the rest. What is open stays open. */
import type { Boot, IsolateRole } from "../../wire/messages.ts";

const { permissions } = Deno;

/** What no isolate needs once its database, its socket and its progress file are open. */
const unneeded = ["write", "env", "run", "ffi", "sys"] as const;

/** Keeps reading and importing only: of the app's modules, and of what they import from us. */
export function keepAppFolder({ role, databasePath, progressPath }: Boot, socketPath: string): void {
  for (const name of unneeded) permissions.revokeSync({ name });
  if (role !== "runner") permissions.revokeSync({ name: "net" });
  for (
    const path of [databasePath, folderOf(databasePath), progressPath, folderOf(progressPath), socketPath]
  ) {
    if (path !== "") permissions.revokeSync({ name: "read", path });
  }
}

/** Gives up reading and importing too; runners keep the network. Throws when anything else is left. */
export function revokeAll(role: IsolateRole): void {
  permissions.revokeSync({ name: "read" });
  permissions.revokeSync({ name: "import" });
  for (
    const name of ["read", "import", ...unneeded, ...(role === "runner" ? [] : ["net" as const])] as const
  ) {
    const { state } = permissions.querySync({ name });
    if (state === "granted") throw new Error(`An isolate must not keep the permission "${name}"`);
  }
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}
