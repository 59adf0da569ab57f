/** Supported platforms of the commands. */

/** Commands that need neither a server on this machine nor its bundler. */
const EVERYWHERE = ["rollback", "init", "", "help", "-h", "--help"];

/** Returns why a command cannot run on a platform (`process.platform`), or `null` if it can. */
export function refusedHere(command: string, platform: string): string | null {
  if (platform !== "win32" || EVERYWHERE.includes(command)) return null;
  return "The server runs on Linux and macOS. On Windows, use WSL: install it with `wsl --install`, then run the same " +
    "commands there, in a folder on the WSL disk";
}
