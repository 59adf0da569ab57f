/** Routing: the part of the address after `#`, so that every view can be linked to and works with the back button. */
import { useMemo, useSyncExternalStore } from "react";

export interface Route {
  /** Parts of the path; the first one names the view. */
  readonly path: readonly string[];
  readonly search: URLSearchParams;
}

export function currentRoute(): Route {
  return parse(location.hash);
}

/** Address of the view shown. Differs from the browser's while the user is asked about unsaved edits. */
let shown = location.hash;
/** Forms with unsaved edits, each with the beginning of the paths that keep it open. */
const unsaved = new Map<symbol, readonly string[]>();
const listeners = new Set<() => void>();

function show(hash: string): void {
  shown = hash;
  for (const listener of listeners) listener();
}

/** Returns the first form that the browser's address would close, or `undefined`. */
function heldBy(): symbol | undefined {
  if (location.hash === shown) return undefined;
  const { path } = parse(location.hash);
  return [...unsaved].find(([, kept]) => kept.some((part, at) => path[at] !== part))?.[0];
}

addEventListener("hashchange", () => {
  // A setup link that is opened in a tab with the dashboard.
  if (location.hash.startsWith("#svc_setup_token=")) location.reload();
  else if (heldBy() === undefined) show(location.hash);
  else for (const listener of listeners) listener();
});

function confirmClose(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

/** Asks before the user leaves the paths that begin with `kept`, or the page. Returns a function that ends this. */
export function holdRoute(key: symbol, kept: readonly string[]): () => void {
  if (unsaved.size === 0) addEventListener("beforeunload", confirmClose);
  unsaved.set(key, kept);
  return () => {
    unsaved.delete(key);
    if (unsaved.size === 0) removeEventListener("beforeunload", confirmClose);
  };
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** Returns whether the form with this key must ask, because the user wants to leave it. */
export function useHeldRoute(key: symbol): boolean {
  return useSyncExternalStore(subscribe, () => heldBy() === key);
}

/** Answers the question: shows the new address, or returns to the view. */
export function answerHeldRoute(leave: boolean): void {
  if (!leave) history.replaceState(null, "", shown);
  show(location.hash);
}

function parse(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?");
  return {
    path: path.split("/").filter((part) => part !== "").map(decode),
    search: new URLSearchParams(search),
  };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Returns the address of a view; `undefined` and empty values are omitted. */
export function href(
  path: readonly string[],
  search: Readonly<Record<string, string | undefined>> = {},
): string {
  const given = Object.entries(search).filter((entry): entry is [string, string] => !!entry[1]);
  const query = new URLSearchParams(given).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${query === "" ? "" : `?${query}`}`;
}

/** Shows a view without asking about unsaved edits. */
export function go(...to: Parameters<typeof href>): void {
  location.hash = href(...to);
  show(location.hash);
}

/** Like {@linkcode go}, but replaces the current history entry. */
export function replace(...to: Parameters<typeof href>): void {
  history.replaceState(null, "", href(...to));
  show(location.hash);
}

export function useRoute(): Route {
  const hash = useSyncExternalStore(subscribe, () => shown);
  return useMemo(() => parse(hash), [hash]);
}
