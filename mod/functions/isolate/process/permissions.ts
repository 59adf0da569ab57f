/** Gives up the isolate's permissions: first all but the app's folder, then the rest. What is open stays open. */
import type { Boot, IsolateRole } from "../../wire/messages.ts";

const { permissions } = Deno;

/** Folder of our own modules, as it was granted. */
const sources = decodeURIComponent(new URL("../../../", import.meta.url).pathname);

/** What no isolate needs once its database, its socket and its progress file are open. */
const unneeded = ["write", "env", "run", "ffi", "sys"] as const;

/** Keeps reading and importing only: of the app's code. Our own modules must be loaded. */
export function keepAppFolder({ role, databasePath, progressPath }: Boot, socketPath: string): void {
  for (const name of unneeded) permissions.revokeSync({ name });
  if (role !== "runner") permissions.revokeSync({ name: "net" });
  const talk = [progressPath, folderOf(progressPath), socketPath];
  // Our own modules are loaded: the import map closes their folder too, but an address can be spelled in many ways.
  for (const path of [databasePath, folderOf(databasePath), ...talk, sources]) {
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
