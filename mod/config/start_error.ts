/** Errors that prevent a server from starting. They are shown as one line without a stack trace. */
import type { HelpCode } from "../explained.ts";

export class StartError extends Error {
  override readonly name: string = "StartError";
  /** Selects the page of the documentation that explains the error, if there is one. */
  readonly code: HelpCode | null;

  constructor(message: string, { code, ...options }: ErrorOptions & { readonly code?: HelpCode } = {}) {
    super(message, options);
    this.code = code ?? null;
  }
}

export { fileErrorReason } from "../kit/durable_files.ts";

/** The app's code cannot be loaded, or its schema does not match the data. Editing the app may fix it. */
export class AppError extends StartError {
  override readonly name = "AppError";
}
