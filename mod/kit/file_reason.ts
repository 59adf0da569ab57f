/** Why a file or folder cannot be used, for messages to people. */
export function reasonOf(error: unknown): string {
  // The program may use all files that its user may, but for those through which the system is governed.
  if (error instanceof Deno.errors.NotCapable) {
    return "it is in a folder of the system that programs may not use";
  }
  return error instanceof Error ? error.message : String(error);
}
