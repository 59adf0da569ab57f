/** Freezes results, because subscribers share them and diffs build on them. */
import * as clientLimits from "../limits.ts";

/** Freezes a JSON value recursively. Frozen parts are assumed to be frozen completely. */
export function freezeDeep(value: unknown): void {
  freeze(value, clientLimits.freezeDepthMax);
}

function freeze(value: unknown, depth: number): void {
  if (typeof value !== "object" || value === null || depth === 0 || Object.isFrozen(value)) return;
  Object.freeze(value);
  if (Array.isArray(value)) {
    for (const element of value) freeze(element, depth - 1);
  } else {
    for (const key in value) freeze((value as Record<string, unknown>)[key], depth - 1);
  }
}
