/** Why something cannot be restored, in words for whoever asked for it. */

export class RestoreError extends Error {
  override readonly name = "RestoreError";
}
