/**
 * Gives up what a server was started with and does not need. The set `serve` has the whole disk as one folder, of which
 * parts can be kept: asking for what is granted anyway makes a grant of its own, which stays when the large one is given
 * up. That takes no second process, and it is done before anything is served.
 */
import type { Log } from "../../kit/log.ts";
import type { ServeConfig } from "../../config/config.ts";
import { ownPlaces } from "./own_places.ts";

const WHOLE_DISK = "/";

/** Narrows reading and writing to what the configuration needs. Says so where the way the server was started does not let it. */
export async function narrowPermissions(config: ServeConfig, log: Log): Promise<void> {
  const places = await ownPlaces(config);
  const narrowed = await Promise.all([keepOnly("read", places.read), keepOnly("write", places.write)]);
  if (narrowed.includes(false)) {
    log("warn", "The server may read or write all files: start it with the permission set serve (-P=serve)");
  }
}

/** Whether nothing but these is left. */
async function keepOnly(name: "read" | "write", paths: readonly string[]): Promise<boolean> {
  const { permissions } = Deno;
  for (const path of paths) {
    // Where it is not granted, asking could ask the operator.
    const { state } = await permissions.query({ name, path });
    if (state === "granted") await permissions.request({ name, path });
  }
  await permissions.revoke({ name, path: WHOLE_DISK });
  return (await permissions.query({ name, path: WHOLE_DISK })).state !== "granted";
}

/** The machine's addresses, asked for once: the right to ask is given up behind it. None where they may not be asked for. */
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
