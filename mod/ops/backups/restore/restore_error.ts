/** Errors of restores, shown to operators and administrators. */

/** Cause of a failed restore: the archive, lack of disk space, or the server. */
export type RestoreFailureCause = "archive" | "room" | "server";

export class RestoreError extends Error {
  override readonly name = "RestoreError";
  readonly fault: RestoreFailureCause;

  constructor(
    message: string,
    { fault = "server", cause }: { readonly fault?: RestoreFailureCause; readonly cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.fault = fault;
  }
}
