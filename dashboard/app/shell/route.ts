/** Where in the dashboard a person is: the part of the address behind `#`, so that it can be shared and gone back from. */
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";

export interface Route {
  /** Parts of the path; the first one names the view. */
  readonly path: readonly string[];
  readonly search: URLSearchParams;
}

/** Where the page is now. */
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

/** The address of a place in the dashboard; `undefined` and empty values are left out. */
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

/** Changes what is looked at without a step in the history. */
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

/** Whether the dialog of a view is open that makes something: an address with `make=true` opens it too, once. */
export function useOpenedBy(view: string): readonly [open: boolean, setOpen: (open: boolean) => void] {
  const { search } = useRoute();
  const asked = search.get("make") === "true";
  const [open, setOpen] = useState(asked);
  useEffect(() => {
    if (!asked) return;
    setOpen(true);
    // An address that is shared, or come back to, asks nobody to make one.
    replace([view]);
  }, [asked, view]);
  return [open, setOpen];
}
