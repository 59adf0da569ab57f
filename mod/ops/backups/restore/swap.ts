/**
 * Swapping files: what is there goes to a folder that keeps it, what is staged comes in its place. Each step is a rename,
 * all of them stand in the marker before the first is made, and each can be seen to have been made or not. So a process
 * that is killed anywhere is continued, in either direction, and ends as if it had not been.
 */
import { dirname, join } from "node:path";
import { statIfThere, syncFolder } from "../../../kit/durable_files.ts";
import type { Move, RestoreMarker, Swap } from "./marker.ts";
import { writeMarker } from "./marker.ts";
import { besideDatabase, KEPT_PREFIX, nameOfPart, partsInOrder, STAGED_FOLDER } from "./places.ts";
import { RestoreError } from "./restore_error.ts";

/** Called with a word for each step before it is made; tests end the process there. */
export type BeforeStep = (step: string) => void;

/** Plans the swap and puts it into the marker; nothing has moved yet. Throws a `RestoreError` when it could not be done. */
export async function beginSwap(
  dataDir: string,
  marker: RestoreMarker,
  { now, beforeStep }: { readonly now: Date; readonly beforeStep: BeforeStep },
): Promise<Swap> {
  const keptIn = await freeName(dataDir, now);
  const staged = join(STAGED_FOLDER, marker.folder);
  const names = partsInOrder(marker.parts).map((part) => nameOfPart[part]);
  for (const name of names) {
    if (!await isThere(dataDir, join(staged, name))) {
      throw new RestoreError(`"${join(staged, name)}" is gone from the data folder`);
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

/** A quick look for what happened to the staged files since they were checked. Throws a `RestoreError` that names the file. */
async function checkStaged(dataDir: string, { folder, sizes }: RestoreMarker): Promise<void> {
  const staged = join(STAGED_FOLDER, folder);
  for (const [name, size] of Object.entries(sizes)) {
    const found = (await statIfThere(join(dataDir, staged, name)))?.size;
    if (found === size) continue;
    throw new RestoreError(
      `"${join(staged, name)}" is damaged: it has ${found ?? 0} bytes, and had ${size} when it was staged`,
    );
  }
  const database = join(staged, nameOfPart.database);
  const { headerFault } = await import("../../../engine/mod.ts");
  const fault = await headerFault(join(dataDir, database));
  if (fault !== null) throw new RestoreError(`"${database}" is damaged: it ${fault}`);
}

/** Moves everything to its place. What was moved already stays. */
export async function swapIn(dataDir: string, swap: Swap, beforeStep: BeforeStep): Promise<void> {
  if (keepsSomething(swap)) {
    beforeStep("folder");
    await Deno.mkdir(join(dataDir, swap.keptIn), { recursive: true, mode: 0o700 });
    await syncFolder(dataDir);
  }
  for (const move of swap.moves) await make(dataDir, move, beforeStep);
}

/** Moves everything back to where it was before {@linkcode swapIn}. */
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
    // What was never kept is where it was.
    if (isOwn(from) && !await isThere(dataDir, to)) continue;
    await make(dataDir, { from: to, to: from }, beforeStep);
  }
  beforeStep("folder");
  // Whatever else somebody put there stays, and with it the folder.
  await Deno.remove(join(dataDir, swap.keptIn)).catch(() => {});
}

/** Whether there was anything to keep: a new data folder has nothing. */
export function keepsSomething({ moves }: Swap): boolean {
  return moves.some(({ from }) => isOwn(from));
}

async function make(dataDir: string, { from, to }: Move, beforeStep: BeforeStep): Promise<void> {
  const [source, target] = [await isThere(dataDir, from), await isThere(dataDir, to)];
  if (isOwn(from)) {
    // Under its own name there may be what came in its place already, or nothing any more.
    if (target || !source) return;
  } else {
    if (target && source) {
      throw new RestoreError(
        `Both "${to}" and "${from}" are in the data folder: something made "${to}" while a restore was not finished. ` +
          `Move "${to}" to another folder`,
      );
    }
    if (target) return;
    if (!source) throw new RestoreError(`Neither "${to}" nor "${from}" is in the data folder`);
  }
  beforeStep(`move ${from}`);
  await Deno.rename(join(dataDir, from), join(dataDir, to));
  beforeStep(`sync ${from}`);
  await syncFolder(dirname(join(dataDir, to)));
  await syncFolder(dirname(join(dataDir, from)));
}

/** Whether a path is in the data folder itself, where the server has its files. */
function isOwn(path: string): boolean {
  return dirname(path) === ".";
}

async function isThere(dataDir: string, path: string): Promise<boolean> {
  try {
    await Deno.lstat(join(dataDir, path));
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/**
 * What is in the place of the parts of a staged restore. Throws a `RestoreError` when they could not be swapped: renames do
 * not reach over file systems.
 */
export async function checkSwappable(
  dataDir: string,
  { folder, parts }: Pick<RestoreMarker, "folder" | "parts">,
): Promise<readonly string[]> {
  const old: string[] = [];
  for (const name of partsInOrder(parts).map((part) => nameOfPart[part])) {
    for (const own of [name, ...besideDatabase(name)]) if (await isThere(dataDir, own)) old.push(own);
  }
  const { dev } = await Deno.stat(dataDir);
  for (const path of [join(STAGED_FOLDER, folder), ...old]) {
    if ((await Deno.lstat(join(dataDir, path))).dev !== dev) {
      throw new RestoreError(
        `"${path}" is on another file system than the data folder: what is restored could not take its place in one ` +
          "step. Restore while it is not mounted, and copy the files afterwards",
      );
    }
  }
  return old;
}

/** A name with the time that no earlier restore took. */
async function freeName(dataDir: string, now: Date): Promise<string> {
  const name = KEPT_PREFIX + now.toISOString().replace(/\.\d+Z$/, "Z").replaceAll(":", "-");
  for (let number = 1;; number++) {
    const numbered = number === 1 ? name : `${name}-${number}`;
    if (await statIfThere(join(dataDir, numbered)) === null) return numbered;
  }
}
