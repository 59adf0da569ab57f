/** Why a file or folder cannot be used, for messages to people. */
export function reasonOf(error: unknown): string {
  // Commands may use all files that their user may, but for those through which the system is governed; others may less.
  if (error instanceof Deno.errors.NotCapable) {
    return "this process has no permission to use it";
  }
  return error instanceof Error ? error.message : String(error);
}
