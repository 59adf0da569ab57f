/**
 * Sign-ins that this browser began. Each has a random state, which the server puts into the page's address beside the
 * result. Tokens in an address without the state of such a sign-in come from someone else, who would sign the user in to
 * an account of their own (OA17). States are in `localStorage`, because a window that the page opened does not share its
 * `sessionStorage`.
 */
import * as clientLimits from "../limits.ts";
import { randomUuid } from "../random_uuid.ts";

/** What keys begin with; the state follows. The value is the end, in milliseconds since the epoch. */
const PREFIX = "syncline-flow ";

interface PageStorage {
  readonly length: number;
  key(index: number): string | null;
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** Notes that a sign-in begins. Returns its state, or `null` outside a page and where storage is blocked. */
export function beginFlow(now: number): string | null {
  const state = randomUuid();
  try {
    const storage = pageStorage();
    if (storage === null) return null;
    makeRoom(storage, now);
    storage.setItem(PREFIX + state, String(now + clientLimits.flowMs));
  } catch {
    // Blocked, or no room: the result will not be taken.
    return null;
  }
  return state;
}

/** Returns whether this browser began the sign-in with this state, and forgets it: each is taken once. */
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

/** Whether a sign-in has not ended yet. The clock may have been set back since it began, but not by a whole lifetime. */
function isOpen(until: string | null, now: number): boolean {
  return Number(until) > now && Number(until) <= now + 2 * clientLimits.flowMs;
}

/** Removes expired states, and those that end first if there are too many. */
function makeRoom(storage: PageStorage, now: number): void {
  const open: [until: number, key: string][] = [];
  // From the end: removing a key moves those behind it.
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

/** `null` outside a page: other platforms have a `localStorage` for all programs at once. Throws where it is blocked. */
function pageStorage(): PageStorage | null {
  const page = globalThis as { document?: unknown; localStorage?: PageStorage };
  return page.document === undefined ? null : page.localStorage ?? null;
}
