/** Routing: the part of the address after `#`, so that every view can be linked to and works with the back button. */
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";

export interface Route {
  /** Parts of the path; the first one names the view. */
  readonly path: readonly string[];
  readonly search: URLSearchParams;
}

export function currentRoute(): Route {
  return parse(location.hash);
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

export function go(...to: Parameters<typeof href>): void {
  location.hash = href(...to);
}

/** Replaces the current history entry. */
export function replace(...to: Parameters<typeof href>): void {
  history.replaceState(null, "", href(...to));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute(): Route {
  const hash = useSyncExternalStore((listener) => {
    addEventListener("hashchange", listener);
    return () => removeEventListener("hashchange", listener);
  }, () => location.hash);
  return useMemo(() => parse(hash), [hash]);
}

/** State of a view's "create" dialog, which an address with `make=true` opens as well. */
export function useCreateDialog(view: string): readonly [open: boolean, setOpen: (open: boolean) => void] {
  const { search } = useRoute();
  const asked = search.get("make") === "true";
  const [open, setOpen] = useState(asked);
  useEffect(() => {
    if (!asked) return;
    setOpen(true);
    // Remove the parameter so that a shared link or the back button does not open the dialog again.
    replace([view]);
  }, [asked, view]);
  return [open, setOpen];
}
