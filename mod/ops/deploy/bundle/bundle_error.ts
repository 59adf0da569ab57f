/** What was sent is no bundle that can be used; the message says why. */
export class BundleError extends Error {
  override readonly name = "BundleError";
}
