/** Errors that prevent a server from starting. They are shown as one line without a stack trace. */

export class StartError extends Error {
  override readonly name: string = "StartError";
}

export { fileErrorReason } from "../kit/file_error_reason.ts";

/** The app's code cannot be loaded, or its schema does not match the data. Editing the app may fix it. */
export class AppError extends StartError {
  override readonly name = "AppError";
}
