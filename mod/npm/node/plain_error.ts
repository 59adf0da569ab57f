/** What stops a command; the message is all there is to say. */
import process from "node:process";

export class PlainError extends Error {
  override readonly name = "PlainError";
}

/** Runs a program: what it gives is the exit code, and what stops it is said in a line. */
export async function runProgram(run: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await run();
  } catch (error) {
    if (!(error instanceof PlainError)) throw error;
    process.stderr.write(`syncline: ${error.message}\n`);
    process.exitCode = 1;
  }
}

/** Whether an error of the file system has this code. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && (error as Error & { readonly code?: unknown }).code === code;
}
