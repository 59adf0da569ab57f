/**
 * Loaded before the server, controls one write step: as configured by a JSON file with a {@linkcode Step}, which is read at each
 * step, the server blocks before or after the step, so that it can be killed there, or the step fails.
 */
import { readFileSync } from "node:fs";

/** A step and what happens at it. */
export interface Step {
  /** Kind of write. */
  readonly call: "mkdir" | "rename" | "writeTextFile";
  /** Pattern of the written path. */
  readonly path: string;
  readonly then: "block before" | "block after" | "ENOSPC" | "EACCES";
}

const FILE = Deno.env.get("SYNCLINE_TEST_STEP_FILE") ?? "";

function stepAt(call: Step["call"], path: unknown): Step["then"] | null {
  let text;
  try {
    text = readFileSync(FILE, "utf8");
  } catch {
    return null;
  }
  const step = JSON.parse(text) as Step;
  return step.call === call && new RegExp(step.path).test(String(path)) ? step.then : null;
}

/** Blocks the process until it is killed. */
function stand(): never {
  Deno.stdout.writeSync(new TextEncoder().encode("blocked at the step\n"));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  throw new Error("nobody wakes it");
}

function patched<Args extends unknown[], Result>(
  call: Step["call"],
  { run, pathOf }: {
    readonly run: (...args: Args) => Promise<Result>;
    readonly pathOf: (...args: Args) => unknown;
  },
): (...args: Args) => Promise<Result> {
  return async (...args) => {
    const then = stepAt(call, pathOf(...args));
    if (then === "block before") stand();
    if (then === "ENOSPC" || then === "EACCES") {
      throw Object.assign(new Error(`${then}, made up`), { code: then });
    }
    const result = await run(...args);
    if (then === "block after") stand();
    return result;
  };
}

Deno.rename = patched("rename", { run: Deno.rename, pathOf: (_from, to) => to });
Deno.mkdir = patched("mkdir", { run: Deno.mkdir, pathOf: (path) => path });
Deno.writeTextFile = patched("writeTextFile", { run: Deno.writeTextFile, pathOf: (path) => path });
