/** Checks the free disk space of a data folder. */
import { statfs } from "node:fs/promises";
import { statIfThere } from "../../kit/durable_files.ts";
import { opsLimits } from "../limits.ts";
import type { Finding } from "./finding.ts";

export async function checkSpace(dataDir: string, database: string): Promise<Finding> {
  const { bavail, bsize } = await statfs(dataDir);
  let bytes = 0;
  for (const path of [database, `${database}-wal`]) bytes += (await statIfThere(path))?.size ?? 0;
  return judgeSpace(bavail * bsize, bytes);
}

/** Judges free bytes relative to the size of the database. */
export function judgeSpace(free: number, databaseBytes: number): Finding {
  const facts = `${sizeText(free)} free, database size ${sizeText(databaseBytes)}`;
  if (free < opsLimits.diskReserveBytes) return { check: "space", status: "fail", message: facts };
  if (free < databaseBytes + opsLimits.diskReserveBytes) {
    return {
      check: "space",
      status: "warn",
      message: `${facts}: not enough for the copy that a backup makes`,
    };
  }
  return { check: "space", status: "ok", message: facts };
}

function sizeText(bytes: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${(bytes / 1024 ** step).toFixed(step === 0 ? 0 : 1)} ${units[step]}`;
}
