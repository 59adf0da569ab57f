/** Revokes the isolate's permissions: first everything except the app's folder, then the rest. Open resources stay open. */
import type { Boot, IsolateRole } from "../../wire/messages.ts";

const { permissions } = Deno;

/** Folder of our own modules, as granted. */
const sources = decodeURIComponent(new URL("../../../", import.meta.url).pathname);

/** Not needed once database, socket and progress file are open. */
const unneeded = ["write", "env", "run", "ffi", "sys"] as const;

/** Revokes everything except reading and importing app code. Our own modules must be loaded before. */
export function keepAppFolder({ role, databasePath, progressPath }: Boot, socketPath: string): void {
  for (const name of unneeded) permissions.revokeSync({ name });
  if (role !== "runner") permissions.revokeSync({ name: "net" });
  const talk = [progressPath, folderOf(progressPath), socketPath];
  // The import map blocks our own folder too, but an address has many spellings.
  for (const path of [databasePath, folderOf(databasePath), ...talk, sources]) {
    if (path !== "") permissions.revokeSync({ name: "read", path });
  }
}

/** Revokes reading and importing. Runners keep network access. Throws if any other permission is left. */
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
