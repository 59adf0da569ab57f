/**
 * Revokes permissions that the server does not need. The permission set `serve` grants the whole disk. Requesting a path that
 * is already granted creates a separate grant, which remains when the one for the whole disk is revoked.
 */
import type { Log } from "../../kit/log.ts";
import type { ServeConfig } from "../../config/config.ts";
import { requiredFileAccess } from "./file_access.ts";

const WHOLE_DISK = "/";

/** Restricts reads and writes to the paths of the configuration. Logs a warning if the permissions are too wide for that. */
export async function narrowPermissions(config: ServeConfig, log: Log): Promise<void> {
  const places = await requiredFileAccess(config);
  const narrowed = await Promise.all([keepOnly("read", places.read), keepOnly("write", places.write)]);
  if (narrowed.includes(false)) {
    log("warn", "The server may read or write all files. Start it with the permission set serve (-P=serve)");
  }
}

/** Returns whether the whole disk is no longer granted. */
async function keepOnly(name: "read" | "write", paths: readonly string[]): Promise<boolean> {
  const { permissions } = Deno;
  for (const path of paths) {
    // Requesting a path that is not granted could prompt the operator.
    const { state } = await permissions.query({ name, path });
    if (state === "granted") await permissions.request({ name, path });
  }
  await permissions.revoke({ name, path: WHOLE_DISK });
  return (await permissions.query({ name, path: WHOLE_DISK })).state !== "granted";
}

/** Returns the machine's network interfaces and revokes that permission. Empty if it is not granted. */
export async function networkInterfaces(): Promise<Deno.NetworkInterfaceInfo[]> {
  try {
    return Deno.networkInterfaces();
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) return [];
    throw error;
  } finally {
    await Deno.permissions.revoke({ name: "sys", kind: "networkInterfaces" });
  }
}
