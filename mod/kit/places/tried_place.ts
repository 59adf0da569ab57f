/** Tries whether a folder or a bucket can be used: what a server does there, done once with a few bytes. */
import { randomBytes } from "node:crypto";

/** A place and what is done there, in this order. Each throws why it cannot be done. */
export interface TriedPlace {
  /** For people. */
  readonly place: string;
  readonly list: () => Promise<void>;
  readonly write: (bytes: Uint8Array<ArrayBuffer>) => Promise<void>;
  /** Gives what was written; `null` when there is nothing. */
  readonly read: () => Promise<Uint8Array | null>;
  readonly remove: () => Promise<void>;
}

export type TriedStep = "list" | "write" | "read" | "remove";

export interface PlaceReport {
  readonly place: string;
  /** What was tried; the last one may have failed, and nothing was tried after it but to clean up. */
  readonly steps: readonly { readonly step: TriedStep; readonly error: string | null }[];
}

const BYTES = 64;

/** Tries a place. A step that takes longer than `stepMs` has failed. Never rejects. */
export async function tryPlace(
  { place, list, write, read, remove }: TriedPlace,
  { stepMs }: { readonly stepMs: number },
): Promise<PlaceReport> {
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
  const steps: { step: TriedStep; error: string | null }[] = [];
  for (const [step, run] of all) {
    const error = await within(stepMs, run).then(() => null, reasonOf);
    steps.push({ step, error });
    if (error === null) continue;
    // What comes to be written late is not left there.
    if (step === "write") void writing.catch(() => {}).then(remove).catch(() => {});
    // Nor is what could not be removed at once.
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
