/** Unpacks the server's files, which the package carries as one file. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The first line of the file as JSON: paths with slashes, and sizes in bytes. The contents follow in this order. */
export type PackIndex = readonly (readonly [path: string, bytes: number])[];

const LF = 0x0a;

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
  mkdirSync(dirname(folder), { recursive: true });
  // A name that nobody else has, not even another of this process id in another container.
  const draft = mkdtempSync(`${folder}.`);
  try {
    make(draft);
    renameSync(draft, folder);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
}
