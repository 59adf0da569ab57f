/** Why a server cannot start, told to the operator as one line without a stack trace. */

export class StartError extends Error {
  override readonly name: string = "StartError";
}

export { reasonOf } from "../kit/file_reason.ts";

/** The app's code cannot be loaded, or its schema does not fit the data: an edit may change that. */
export class AppError extends StartError {
  override readonly name = "AppError";
}
