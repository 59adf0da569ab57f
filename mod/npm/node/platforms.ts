/** Which commands run on which systems. */

/** What needs no server on this machine. */
const EVERYWHERE = ["deploy", "rollback", "init", "", "help", "-h", "--help"];

/** Why a command cannot run on a system, as Node calls it; `null` when it can. */
export function refusedHere(command: string, platform: string): string | null {
  if (platform !== "win32" || EVERYWHERE.includes(command)) return null;
  return "The server runs on Linux and macOS. On Windows it runs in WSL: install that with `wsl --install`, and use the " +
    "same commands there, in a folder of its own disk";
}
