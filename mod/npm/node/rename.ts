/** Retries renames that a virus scanner on Windows may block while it reads a new file. */
import { renameSync } from "node:fs";
import process from "node:process";
import { hasCode } from "./plain_error.ts";

const TRIES_MAX = 20;
const BETWEEN_MS = 50;
const HELD = ["EPERM", "EACCES", "EBUSY"];

export interface Renaming {
  readonly platform?: NodeJS.Platform;
  readonly rename?: (from: string, to: string) => void;
}

/** Throws the error of the last attempt. */
export function renameWithRetries(
  { from, to }: { readonly from: string; readonly to: string },
  { platform = process.platform, rename = renameSync }: Renaming = {},
): void {
  for (let tries = 1;; tries++) {
    try {
      return rename(from, to);
    } catch (error) {
      const held = platform === "win32" && HELD.some((code) => hasCode(error, code));
      if (!held || tries === TRIES_MAX) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BETWEEN_MS);
    }
  }
}
