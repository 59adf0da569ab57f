/**
 * Swaps files: existing ones are moved to a folder that keeps them, staged ones are moved in. Each step is a rename, recorded
 * in the marker beforehand, and it is visible whether it was done. A killed process is therefore resumed in either direction
 * with the same result.
 */
import { dirname, join } from "node:path";
import { statIfThere, syncFolder } from "../../../kit/durable_files.ts";
import {
  besideDatabase,
  KEPT_PREFIX,
  type Move,
  nameOfPart,
  partsInOrder,
  RestoreError,
  type RestoreMarker,
  STAGED_FOLDER,
  type Swap,
  writeMarker,
} from "./marker.ts";

/** Called with the name of each step before it is done. Tests end the process there. */
export type BeforeStep = (step: string) => void;

/** Plans the swap and saves it in the marker, without moving anything. Throws a `RestoreError` if it is impossible. */
export async function beginSwap(
  dataDir: string,
  marker: RestoreMarker,
  { now, beforeStep }: { readonly now: Date; readonly beforeStep: BeforeStep },
): Promise<Swap> {
  const keptIn = await freeName(dataDir, now);
  const staged = join(STAGED_FOLDER, marker.folder);
  const names = partsInOrder(marker.parts).map((part) => nameOfPart[part]);
  for (const name of names) {
    if (!await exists(dataDir, join(staged, name))) {
      throw new RestoreError(`"${join(staged, name)}" is missing from the data folder`);
    }
  }
  await checkStaged(dataDir, marker);
  const old = await checkSwappable(dataDir, marker);
  const keep = old.map((name) => ({ from: name, to: join(keptIn, name) }));
  const moves = [...keep, ...names.map((name) => ({ from: join(staged, name), to: name }))];
  const swap: Swap = { keptIn, moves, direction: "in" };
  beforeStep("plan");
  await writeMarker(dataDir, { ...marker, swap });
  return swap;
}

/** Checks quickly that the staged files are unchanged since their verification. Throws a `RestoreError` with the file name. */
async function checkStaged(dataDir: string, { folder, sizes }: RestoreMarker): Promise<void> {
  const staged = join(STAGED_FOLDER, folder);
  for (const [name, size] of Object.entries(sizes)) {
    const found = (await statIfThere(join(dataDir, staged, name)))?.size;
    if (found === size) continue;
    throw new RestoreError(
      `"${join(staged, name)}" is damaged: it has ${found ?? 0} bytes, but had ${size} when it was staged`,
    );
  }
  const database = join(staged, nameOfPart.database);
  const { headerFault } = await import("../../../engine/mod.ts");
  const fault = await headerFault(join(dataDir, database));
  if (fault !== null) throw new RestoreError(`"${database}" is damaged: it ${fault}`);
}

/** Performs all moves; those already done are skipped. */
export async function swapIn(dataDir: string, swap: Swap, beforeStep: BeforeStep): Promise<void> {
  if (keepsSomething(swap)) {
    beforeStep("folder");
    await Deno.mkdir(join(dataDir, swap.keptIn), { recursive: true, mode: 0o700 });
    await syncFolder(dataDir);
  }
  for (const step of swap.moves) await move(dataDir, step, beforeStep);
}

/** Undoes the moves of {@linkcode swapIn}. */
export async function swapBack(
  dataDir: string,
  marker: RestoreMarker,
  beforeStep: BeforeStep,
): Promise<void> {
  const { swap } = marker;
  if (swap === null) return;
  if (swap.direction === "in") {
    beforeStep("turn");
    await writeMarker(dataDir, { ...marker, swap: { ...swap, direction: "back" } });
  }
  for (const { from, to } of [...swap.moves].reverse()) {
    // Files that were not moved are still in place.
    if (isOwn(from) && !await exists(dataDir, to)) continue;
    await move(dataDir, { from: to, to: from }, beforeStep);
  }
  beforeStep("folder");
  // The folder is kept if it contains other files.
  await Deno.remove(join(dataDir, swap.keptIn)).catch(() => {});
}

/** Whether any file is kept; a new data folder had none. */
export function keepsSomething({ moves }: Swap): boolean {
  return moves.some(({ from }) => isOwn(from));
}

async function move(dataDir: string, { from, to }: Move, beforeStep: BeforeStep): Promise<void> {
  const [source, target] = [await exists(dataDir, from), await exists(dataDir, to)];
  if (isOwn(from)) {
    // The original name may be taken by the new file, or free.
    if (target || !source) return;
  } else {
    if (target && source) {
      throw new RestoreError(
        `Both "${to}" and "${from}" exist in the data folder: "${to}" was created during an unfinished restore. ` +
          `Move "${to}" to another folder`,
      );
    }
    if (target) return;
    if (!source) throw new RestoreError(`Neither "${to}" nor "${from}" exists in the data folder`);
  }
  beforeStep(`move ${from}`);
  await Deno.rename(join(dataDir, from), join(dataDir, to));
  beforeStep(`sync ${from}`);
  await syncFolder(dirname(join(dataDir, to)));
  await syncFolder(dirname(join(dataDir, from)));
}

/** Whether a path is directly in the data folder, where the server's own files are. */
function isOwn(path: string): boolean {
  return dirname(path) === ".";
}

async function exists(dataDir: string, path: string): Promise<boolean> {
  try {
    await Deno.lstat(join(dataDir, path));
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Returns the files that a restore replaces. Throws a `RestoreError` if renames would cross file systems. */
export async function checkSwappable(
  dataDir: string,
  { folder, parts }: Pick<RestoreMarker, "folder" | "parts">,
): Promise<readonly string[]> {
  const old: string[] = [];
  for (const name of partsInOrder(parts).map((part) => nameOfPart[part])) {
    for (const own of [name, ...besideDatabase(name)]) if (await exists(dataDir, own)) old.push(own);
  }
  const { dev } = await Deno.stat(dataDir);
  for (const path of [join(STAGED_FOLDER, folder), ...old]) {
    if ((await Deno.lstat(join(dataDir, path))).dev !== dev) {
      throw new RestoreError(
        `"${path}" is on another file system than the data folder, so it cannot be replaced atomically. ` +
          "Unmount it, restore, and copy the files afterwards",
      );
    }
  }
  return old;
}

/** Returns an unused folder name that contains the time. */
async function freeName(dataDir: string, now: Date): Promise<string> {
  const name = KEPT_PREFIX + now.toISOString().replace(/\.\d+Z$/, "Z").replaceAll(":", "-");
  for (let number = 1;; number++) {
    const numbered = number === 1 ? name : `${name}-${number}`;
    if (await statIfThere(join(dataDir, numbered)) === null) return numbered;
  }
}
