/** Why a server cannot start, told to the operator as one line without a stack trace. */

export class StartError extends Error {
  override readonly name: string = "StartError";
}

/** Why a file or folder cannot be used, for the message of a {@linkcode StartError}. */
export function reasonOf(error: unknown): string {
  // The server may use all files that its user may, but for those through which the system is governed.
  if (error instanceof Deno.errors.NotCapable) {
    return "it is in a folder of the system that programs may not use";
  }
  return error instanceof Error ? error.message : String(error);
}

/** The app's code cannot be loaded, or its schema does not fit the data: an edit may change that. */
export class AppError extends StartError {
  override readonly name = "AppError";
}
