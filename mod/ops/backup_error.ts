/** Why a backup cannot be made, for the operator. */

export class BackupError extends Error {
  override readonly name = "BackupError";
}
