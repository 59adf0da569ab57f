/** The app's own sources of a deployed version, from the source map of its bundle, and their differences. */
import { structuredPatch, type StructuredPatchHunk } from "diff";
import { adminSession } from "../../server/admin_session.ts";

/** Texts by path, relative to the functions folder. */
export type Sources = ReadonlyMap<string, string>;

/** Before the source map, which is the last line. */
const MAP_MARK = "=data:application/json;base64,";
const SOURCES_URL = "app:///";
/** Header with the functions folder in the names of sources, which differs between deploys from other folders. */
const FUNCTIONS_HEADER = "Syncline-Functions-Folder";
const KNOWN_MAX = 4;
/** Versions read last. They never change. */
const known = new Map<string, Promise<Sources>>();

/** Reads the sources of a version. Empty for versions of earlier releases, whose source maps have no contents. */
export function readSources(hash: string): Promise<Sources> {
  const reading = known.get(hash) ?? download(hash);
  known.delete(hash);
  known.set(hash, reading);
  reading.catch(() => known.delete(hash));
  for (const [oldest] of known) if (known.size > KNOWN_MAX) known.delete(oldest);
  return reading;
}

async function download(hash: string): Promise<Sources> {
  const response = await adminSession.fetch(
    `/api/admin/functions/versions/${encodeURIComponent(hash)}/bundle`,
  );
  const folder = decodeURIComponent(response.headers.get(FUNCTIONS_HEADER) ?? "");
  const bundle = await response.text();
  const at = bundle.lastIndexOf(MAP_MARK);
  if (at < 0) return new Map();
  const { sources, sourcesContent = [] } = JSON.parse(decoded(bundle.slice(at + MAP_MARK.length).trim())) as {
    readonly sources: readonly string[];
    readonly sourcesContent?: readonly (string | null)[];
  };
  const files = sources.flatMap((source, index): [string, string][] => {
    const text = sourcesContent[index];
    if (!source.startsWith(SOURCES_URL) || typeof text !== "string") return [];
    return [[relativePath(folder, decodeURIComponent(source.slice(SOURCES_URL.length))), text]];
  });
  return new Map(files.toSorted(([a], [b]) => a < b ? -1 : 1));
}

/** Returns a path relative to a folder, such as `orders.ts` or `../shared/prices.ts`. */
function relativePath(folder: string, path: string): string {
  const [from, to] = [folder.split("/").filter((part) => part !== ""), path.split("/")];
  let common = 0;
  while (common < from.length && from[common] === to[common]) common++;
  return [...from.slice(common).map(() => ".."), ...to.slice(common)].join("/");
}

/** Returns the path that a link names, with or without its extension, or the first one that was not generated. */
export function chosenPath(paths: readonly string[], named: string): string | undefined {
  return paths.find((path) => path === named) ??
    paths.find((path) => named !== "" && path.replace(/\.[cm]?[jt]sx?$/, "") === named) ??
    paths.find((path) => !/(^|\/)_generated\b/.test(path)) ?? paths[0];
}

/** Returns the number of the line that declares an export, or 0. */
export function lineOfExport(text: string, name: string): number {
  const declaration = /^export\s+(?:default\s+)?(?:async\s+)?(?:const|let|var|function\*?|class)\s+([\w$]+)/;
  return text.split("\n").findIndex((line) => declaration.exec(line)?.[1] === name) + 1;
}

function decoded(base64: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)));
}

export interface FileDiff {
  readonly path: string;
  readonly change: "added" | "removed" | "changed";
  /** Numbers of lines. */
  readonly added: number;
  readonly removed: number;
  /** `null` if the texts are too different to be compared in time. */
  readonly hunks: readonly StructuredPatchHunk[] | null;
}

const DIFF_MS_MAX = 2_000;

/** Compares two versions file by file. Equal files are left out. */
export function diffSources(before: Sources, after: Sources): readonly FileDiff[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])].toSorted();
  return paths.flatMap((path) => {
    const [old, now] = [before.get(path), after.get(path)];
    if (old === now) return [];
    const change = old === undefined ? "added" : now === undefined ? "removed" : "changed";
    const patch = structuredPatch(path, path, old ?? "", now ?? "", undefined, undefined, {
      context: 3,
      timeout: DIFF_MS_MAX,
    });
    const lines = patch?.hunks.flatMap((hunk) => hunk.lines) ?? [];
    const countOf = (sign: string) => lines.filter((line) => line.startsWith(sign)).length;
    return [{ path, change, added: countOf("+"), removed: countOf("-"), hunks: patch?.hunks ?? null }];
  });
}
