/** The documents that a filter shows, or all, as a file: the server reads them from one commit, whatever is written meanwhile. */
import { adminSession } from "../../server/admin_session.ts";
import type { Where } from "../../server/api.ts";
import type { WorkSteps } from "../../ui/long_work.ts";
import { size } from "../../ui/texts.tsx";
import { isWhole } from "./where.ts";

export type ExportFormat = "jsonl" | "csv";

/** Bytes of a part of the file. */
const PART_BYTES = 4 * 1024 * 1024;

/** What is read waits as parts of a file, which browsers keep on disk: a table of any length fits. */
export async function exportShown(
  { table, ...where }: Where,
  { format, tell, signal }: WorkSteps & { readonly format: ExportFormat },
): Promise<Blob> {
  const path = `/api/admin/export/${encodeURIComponent(table)}?format=${format}`;
  // What a filter looks for stands in no address.
  const filter = isWhole({ table, ...where }) ? {} : { method: "POST", body: JSON.stringify(where) };
  const response = await adminSession.fetch(path, { signal, ...filter });
  const parts: Blob[] = [];
  let waiting: Uint8Array<ArrayBuffer>[] = [];
  let waitingBytes = 0;
  let bytes = 0;
  try {
    const reader = response.body?.getReader();
    for (;;) {
      const { done, value: piece } = await reader?.read() ?? { done: true };
      if (done || piece === undefined) break;
      waiting.push(piece);
      waitingBytes += piece.length;
      bytes += piece.length;
      if (waitingBytes < PART_BYTES) continue;
      parts.push(new Blob(waiting));
      waiting = [];
      waitingBytes = 0;
      tell(`${table} is exported: ${size(bytes)} so far`);
    }
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Error(
      `The export of ${table} broke off: the connection was lost, or it took too long. Nothing was saved.`,
      { cause: error },
    );
  }
  return new Blob([...parts, ...waiting], { type: response.headers.get("Content-Type") ?? "" });
}
