/** Why the server cannot start, told to the operator as one line without a stack trace. */
export class StartError extends Error {
  override readonly name = "StartError";
}
