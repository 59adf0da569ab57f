/** Describes why a file or folder cannot be used. */
export function fileErrorReason(error: unknown): string {
  // Commands may use all files of their user except those that control the system; other processes may use fewer.
  if (error instanceof Deno.errors.NotCapable) {
    return "this process has no permission to use it";
  }
  return error instanceof Error ? error.message : String(error);
}
