/** Tests whether a location can be used: lists it, then writes, reads and removes a small object. */
import { randomBytes } from "node:crypto";
import { type ObjectStore, readObject } from "./object_store.ts";

export interface LocationProbe {
  /** Shown to users. */
  readonly place: string;
  /** Name of the object; leftovers of it must do no harm. */
  readonly name: string;
  /** Opens the location for the test. */
  readonly open: () => Promise<ObjectStore>;
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
  { place, name, open }: LocationProbe,
  { stepMs }: { readonly stepMs: number },
): Promise<ProbeReport> {
  const bytes = new Uint8Array(randomBytes(BYTES));
  let opened: Promise<ObjectStore> | null = null;
  let writing: Promise<unknown> = Promise.resolve();
  const store = () => opened ??= open();
  const remove = async () => await (await store()).delete(name);
  const all: readonly (readonly [ProbeStep, () => Promise<unknown>])[] = [
    ["list", async () => {
      for await (const _ of (await store()).list("")) return;
    }],
    ["write", async () => await (writing = (await store()).put(name, bytes))],
    ["read", async () => {
      const found = await readObject(await store(), name, BYTES);
      if (found === null) throw new Error("The object that was just written is missing");
      if (found.length !== BYTES || found.some((byte, at) => byte !== bytes[at])) {
        throw new Error("The object that was just written has other contents");
      }
    }],
    ["remove", remove],
  ];
  const steps: { step: ProbeStep; error: string | null }[] = [];
  const dispose = async () => await (await store())[Symbol.asyncDispose]();
  for (const [step, run] of all) {
    const error = await within(stepMs, run).then(() => null, reasonOf);
    steps.push({ step, error });
    if (error === null) continue;
    if (step === "write") {
      // Removes an object whose write completes after the timeout.
      void writing.catch(() => {}).then(remove).catch(() => {}).then(dispose).catch(() => {});
      return { place, steps };
    }
    // Tries once more to remove the object.
    if (step !== "list") await within(stepMs, remove).catch(() => {});
    break;
  }
  void dispose().catch(() => {});
  return { place, steps };
}

async function within(ms: number, run: () => Promise<unknown>): Promise<void> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`No answer within ${ms / 1_000} s`)), ms);
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
