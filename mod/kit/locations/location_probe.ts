/** Tests whether a folder or a bucket can be used: lists it, then writes, reads and removes a small object. */
import { randomBytes } from "node:crypto";

/** A location and its operations, in the order of the test. Each throws its reason for failure. */
export interface LocationProbe {
  /** Shown to users. */
  readonly place: string;
  readonly list: () => Promise<void>;
  readonly write: (bytes: Uint8Array<ArrayBuffer>) => Promise<void>;
  /** Returns what was written, or `null`. */
  readonly read: () => Promise<Uint8Array | null>;
  readonly remove: () => Promise<void>;
}

export type ProbeStep = "list" | "write" | "read" | "remove";

export interface ProbeReport {
  readonly place: string;
  /** Steps done; only the last one can have failed. */
  readonly steps: readonly { readonly step: ProbeStep; readonly error: string | null }[];
}

const BYTES = 64;

/** Tests a location. A step fails after `stepMs`. Never rejects. */
export async function probeLocation(
  { place, list, write, read, remove }: LocationProbe,
  { stepMs }: { readonly stepMs: number },
): Promise<ProbeReport> {
  const bytes = new Uint8Array(randomBytes(BYTES));
  const readBack = async () => {
    const found = await read();
    if (found === null) throw new Error("what was written a moment ago is not there");
    if (found.length !== BYTES || found.some((byte, at) => byte !== bytes[at])) {
      throw new Error("what was written a moment ago is something else now");
    }
  };
  let writing = Promise.resolve();
  const all = [
    ["list", list],
    ["write", () => writing = write(bytes)],
    ["read", readBack],
    ["remove", remove],
  ] as const;
  const steps: { step: ProbeStep; error: string | null }[] = [];
  for (const [step, run] of all) {
    const error = await within(stepMs, run).then(() => null, reasonOf);
    steps.push({ step, error });
    if (error === null) continue;
    // Removes an object whose write completes after the timeout.
    if (step === "write") void writing.catch(() => {}).then(remove).catch(() => {});
    // Tries once more to remove the object.
    else if (step !== "list") await within(stepMs, remove).catch(() => {});
    break;
  }
  return { place, steps };
}

async function within(ms: number, run: () => Promise<void>): Promise<void> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`there was no answer within ${ms / 1_000} s`)), ms);
  try {
    const running = run();
    running.catch(() => {});
    await Promise.race([running, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
