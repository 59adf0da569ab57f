/**
 * Applies a result diff to the result it was made from (DF3 to DF7). Values that a diff does not change keep their
 * identity, so that views render only what changed. Browser-safe.
 */

/** The diff does not match the value: sender and receiver disagree. */
export class DiffMismatchError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "DiffMismatchError";
  }
}

/**
 * Returns the result after a diff. Does not modify `before` and shares its unchanged parts; returns `before` itself if
 * the diff changes nothing. Throws a {@linkcode DiffMismatchError}.
 */
export function applyDiff(before: unknown, diff: unknown): unknown {
  if (!isObject(diff)) throw new DiffMismatchError("Cannot apply a diff that is not an object");
  const keys = Object.keys(diff);
  if (keys.length !== 1) throw new DiffMismatchError("Cannot apply a diff without exactly one form");
  switch (keys[0]) {
    case "$r":
      return diff.$r;
    case "$a":
      return applyArrayOps(before, diff.$a);
    case "$o":
      return applyObjectEdit(before, diff.$o);
    default:
      throw new DiffMismatchError(`Cannot apply a diff of the unknown form "${keys[0]}"`);
  }
}

function applyArrayOps(before: unknown, ops: unknown): unknown {
  if (!Array.isArray(before)) throw new DiffMismatchError("Cannot apply an array diff to a non-array");
  if (!Array.isArray(ops)) throw new DiffMismatchError("Cannot apply array ops that are not an array");
  const after: unknown[] = [];
  let changed = false;
  let at = 0;
  const take = (count: number): number => {
    if (at + count > before.length) throw new DiffMismatchError("Cannot apply an array op past the end");
    return at + count;
  };
  for (const op of ops) {
    if (typeof op === "number") {
      if (!Number.isSafeInteger(op) || op === 0) {
        throw new DiffMismatchError(`Cannot apply the array op ${op}`);
      }
      const end = take(Math.abs(op));
      if (op < 0) {
        changed = true;
        at = end;
      } else {
        while (at < end) after.push(before[at++]);
      }
    } else if (Array.isArray(op)) {
      changed ||= op.length > 0;
      for (const element of op) after.push(element);
    } else if (isObject(op) && Object.hasOwn(op, "$p") && Object.keys(op).length === 1) {
      const end = take(1);
      const element = applyDiff(before[at], op.$p);
      changed ||= element !== before[at];
      after.push(element);
      at = end;
    } else {
      throw new DiffMismatchError("Cannot apply an unknown array op");
    }
  }
  if (!changed) return before;
  while (at < before.length) after.push(before[at++]);
  return after;
}

function applyObjectEdit(before: unknown, edit: unknown): unknown {
  if (!isObject(before)) throw new DiffMismatchError("Cannot apply an object diff to a non-object");
  if (!isObject(edit)) throw new DiffMismatchError("Cannot apply an object edit that is not an object");
  const { s: set = {}, d: deleted = [], p: patched = {}, ...unknown } = edit;
  if (!isObject(set) || !Array.isArray(deleted) || !isObject(patched) || Object.keys(unknown).length > 0) {
    throw new DiffMismatchError("Cannot apply an object edit with unknown parts");
  }
  // Assigning would call the setter of a key such as `__proto__`.
  const after: Record<string, unknown> = { ...before };
  let changed = false;
  for (const key of deleted) {
    if (typeof key !== "string" || !Object.hasOwn(after, key)) {
      throw new DiffMismatchError(`Cannot delete the missing key ${JSON.stringify(key)}`);
    }
    delete after[key];
    changed = true;
  }
  for (const key of Object.keys(patched)) {
    if (!Object.hasOwn(after, key)) {
      throw new DiffMismatchError(`Cannot patch the missing key ${JSON.stringify(key)}`);
    }
    const value = applyDiff(after[key], patched[key]);
    if (value !== after[key]) {
      define(after, { key, value });
      changed = true;
    }
  }
  for (const key of Object.keys(set)) {
    define(after, { key, value: set[key] });
    changed = true;
  }
  return changed ? after : before;
}

function define(
  object: Record<string, unknown>,
  field: { readonly key: string; readonly value: unknown },
): void {
  Object.defineProperty(object, field.key, {
    value: field.value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
