/** An unusable bundle; the message contains the reason. */
export class BundleError extends Error {
  override readonly name = "BundleError";
}
