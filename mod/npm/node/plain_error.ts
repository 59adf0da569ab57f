/** An expected failure of a command; only the message is printed. */
import process from "node:process";

export class PlainError extends Error {
  override readonly name = "PlainError";
}

/** Runs a command and exits with its result. A `PlainError` is printed as one line. */
export async function runProgram(run: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await run();
  } catch (error) {
    if (!(error instanceof PlainError)) throw error;
    process.stderr.write(`syncline: ${error.message}\n`);
    process.exitCode = 1;
  }
}

/** Whether a file system error has this code. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && (error as Error & { readonly code?: unknown }).code === code;
}
