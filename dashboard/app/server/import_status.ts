/** How far the server is with an import: of this page, or of one that was left. */
import type { ImportEnd, ImportUnderWay } from "../../../mod/ops/tables/import/import_status.ts";
import { count } from "../ui/texts.tsx";
import { adminSession } from "./admin_session.ts";

export type { ImportEnd } from "../../../mod/ops/tables/import/import_status.ts";

export interface ImportNow {
  readonly running: ImportUnderWay | null;
  readonly last: ImportEnd | null;
}

/** Time between two looks at one that runs. */
export const IMPORT_LOOK_MS = 500;

/** Imports that this page has sent and tells of itself. */
let sentFromHere = 0;

export async function importNow(): Promise<ImportNow> {
  return await (await adminSession.fetch("/api/admin/import")).json() as ImportNow;
}

export function isSentFromHere(): boolean {
  return sentFromHere > 0;
}

/** Runs what sends a file, and tells meanwhile how far the server is with it. */
export async function sendImport<Result>(
  send: () => Promise<Result>,
  tell: (text: string) => void,
): Promise<Result> {
  sentFromHere++;
  const looks = setInterval(() => {
    importNow().then(({ running }) => running !== null && tell(importText(running)), () => {});
  }, IMPORT_LOOK_MS);
  try {
    return await send();
  } finally {
    clearInterval(looks);
    sentFromHere--;
  }
}

export function importText({ table, step, done, of, rows }: ImportUnderWay): string {
  const share = of === null || of === 0 ? "" : `${Math.min(100, Math.floor(done / of * 100))} % `;
  switch (step) {
    case "receiving":
      return `${table}: ${share}of the file is sent`;
    case "checking":
      return `${table}: ${share}is checked, ${count(rows)} rows`;
    case "deleting":
      return `${table}: ${count(rows)} documents are deleted`;
    case "writing":
      return `${table}: ${share}is imported, ${count(rows)} rows`;
    default:
      return step satisfies never;
  }
}
