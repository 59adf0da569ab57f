/** Unpacks the server's files, which the package carries as one file. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { randomBytes } from "node:crypto";
import { basename, dirname, join } from "node:path";

/** The first line of the file as JSON: paths with slashes, and sizes in bytes. The contents follow in this order. */
export type PackIndex = readonly (readonly [path: string, bytes: number])[];

const LF = 0x0a;
const DRAFT_MS_KEPT = 86_400_000;

/** Makes a folder of it, unless it is there. */
export function unpack(pack: string, folder: string): void {
  makeWhole(folder, (draft) => {
    const bytes = readFileSync(pack);
    let at = bytes.indexOf(LF) + 1;
    const index = JSON.parse(bytes.toString("utf8", 0, at)) as PackIndex;
    const made = new Set<string>();
    for (const [path, size] of index) {
      const target = join(draft, path);
      const parent = dirname(target);
      if (!made.has(parent)) {
        mkdirSync(parent, { recursive: true });
        made.add(parent);
      }
      writeFileSync(target, bytes.subarray(at, at += size));
    }
  });
}

/** Makes a folder unless it is there: whole or not at all, whoever is killed and however many begin at once. */
export function makeWhole(folder: string, make: (draft: string) => void): void {
  if (existsSync(folder)) return;
  // A name that nobody else has, not even another of this process id in another container.
  const draft = `${folder}.draft-${randomBytes(6).toString("hex")}`;
  try {
    mkdirSync(dirname(draft), { recursive: true });
    removeOldDrafts(folder);
    make(draft);
    renameSync(draft, folder);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
}

/** Those of processes that were killed: nobody needs a day for one. */
function removeOldDrafts(folder: string): void {
  const parent = dirname(folder);
  const before = Date.now() - DRAFT_MS_KEPT;
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(`${basename(folder)}.draft-`)) continue;
    const path = join(parent, name);
    // Somebody else may be removing it.
    const changed = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity;
    if (changed < before) rmSync(path, { recursive: true, force: true });
  }
}
