/**
 * Sign-ins started by this browser. Each has a random state that the server returns in the page's address with the result.
 * Tokens in an address without such a state come from someone else, who would sign the user in to their own account (OA17).
 * States are in `localStorage`, because a popup window does not share the page's `sessionStorage`.
 */
import * as clientLimits from "../limits.ts";
import { randomUuid } from "../random_uuid.ts";

/** Prefix of the keys, followed by the state. The value is the expiry in milliseconds since the epoch. */
const PREFIX = "syncline-flow ";

interface PageStorage {
  readonly length: number;
  key(index: number): string | null;
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** Records the start of a sign-in. Returns its state, or `null` outside a page or if storage is blocked. */
export function beginFlow(now: number): string | null {
  const state = randomUuid();
  try {
    const storage = pageStorage();
    if (storage === null) return null;
    makeRoom(storage, now);
    storage.setItem(PREFIX + state, String(now + clientLimits.flowMs));
  } catch {
    // Storage is blocked or full: the result will not be accepted.
    return null;
  }
  return state;
}

/** Returns whether this browser started the sign-in with this state, and removes it. Works once. */
export function takeFlow(state: string | null, now: number): boolean {
  if (state === null) return false;
  try {
    const storage = pageStorage();
    const until = storage?.getItem(PREFIX + state) ?? null;
    storage?.removeItem(PREFIX + state);
    return isOpen(until, now);
  } catch {
    // Blocked.
    return false;
  }
}

/** Whether a sign-in has not expired. Tolerates a clock that was set back by less than a lifetime. */
function isOpen(until: string | null, now: number): boolean {
  return Number(until) > now && Number(until) <= now + 2 * clientLimits.flowMs;
}

/** Removes expired states, and the oldest ones if there are too many. */
function makeRoom(storage: PageStorage, now: number): void {
  const open: [until: number, key: string][] = [];
  // Iterate backwards: removing a key shifts the following ones.
  for (let index = storage.length - 1; index >= 0; index--) {
    const key = storage.key(index);
    if (key === null || !key.startsWith(PREFIX)) continue;
    const until = storage.getItem(key);
    if (isOpen(until, now)) open.push([Number(until), key]);
    else storage.removeItem(key);
  }
  open.sort(([one], [other]) => one - other);
  for (const [, key] of open.slice(0, Math.max(0, open.length - clientLimits.flowsMax + 1))) {
    storage.removeItem(key);
  }
}

/** Returns `null` outside a page, where `localStorage` is shared between programs. Throws if storage is blocked. */
function pageStorage(): PageStorage | null {
  const page = globalThis as { document?: unknown; localStorage?: PageStorage };
  return page.document === undefined ? null : page.localStorage ?? null;
}
