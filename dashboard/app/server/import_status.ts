/** Progress of the import that runs on the server, whether or not this page started it. */
import type { FinishedImport, RunningImport } from "../../../mod/ops/tables/import/import_status.ts";
import { count } from "../ui/format.tsx";
import { adminSession } from "./admin_session.ts";

export type { FinishedImport } from "../../../mod/ops/tables/import/import_status.ts";

export interface ImportStatusResponse {
  readonly running: RunningImport | null;
  readonly last: FinishedImport | null;
}

/** Interval between two polls of a running import. */
export const IMPORT_POLL_MS = 500;

/** Number of imports started by this page, which reports their progress itself. */
let importsHere = 0;

export async function fetchImportStatus(): Promise<ImportStatusResponse> {
  return await (await adminSession.fetch("/api/admin/import")).json() as ImportStatusResponse;
}

export function isImportingHere(): boolean {
  return importsHere > 0;
}

/** Runs `send`, which uploads a file, and reports the server's progress until it is done. */
export async function sendImport<Result>(
  send: () => Promise<Result>,
  report: (text: string) => void,
): Promise<Result> {
  importsHere++;
  const timer = setInterval(() => {
    fetchImportStatus().then(({ running }) => running !== null && report(importText(running)), () => {});
  }, IMPORT_POLL_MS);
  try {
    return await send();
  } finally {
    clearInterval(timer);
    importsHere--;
  }
}

export function importText({ table, step, done, of, rows }: RunningImport): string {
  const share = of === null || of === 0 ? "" : `${Math.min(100, Math.floor(done / of * 100))} % `;
  switch (step) {
    case "receiving":
      return `${table}: ${share}uploaded`;
    case "checking":
      return `${table}: ${share}checked, ${count(rows)} rows`;
    case "deleting":
      return `${table}: ${count(rows)} documents deleted`;
    case "writing":
      return `${table}: ${share}imported, ${count(rows)} rows`;
    default:
      return step satisfies never;
  }
}
