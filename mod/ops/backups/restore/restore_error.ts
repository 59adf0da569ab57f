/** Why something cannot be restored, in words for whoever asked for it. */

/** Whose trouble it is: the archive's, the disk's that has no room, or the server's. */
export type RestoreFault = "archive" | "room" | "server";

export class RestoreError extends Error {
  override readonly name = "RestoreError";
  readonly fault: RestoreFault;

  constructor(
    message: string,
    { fault = "server", cause }: { readonly fault?: RestoreFault; readonly cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.fault = fault;
  }
}
