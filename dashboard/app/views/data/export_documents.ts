/** Exports a table, or the documents matching a filter, as a file. The server reads them from one snapshot. */
import { adminSession } from "../../server/admin_session.ts";
import type { Where } from "../../server/api.ts";
import type { TaskControl } from "../../ui/page_tasks.ts";
import { size } from "../../ui/format.tsx";
import { isWhole } from "./where.ts";

export type ExportFormat = "jsonl" | "csv";

/** Maximum size of a blob part, in bytes. */
const PART_BYTES = 4 * 1024 * 1024;

/** Collects the response in blob parts, which browsers may keep on disk, so large tables do not have to fit in memory. */
export async function exportDocuments(
  { table, ...where }: Where,
  { format, report, signal }: TaskControl & { readonly format: ExportFormat },
): Promise<Blob> {
  const path = `/api/admin/export/${encodeURIComponent(table)}?format=${format}`;
  // The filter is sent in the body so that its values do not appear in an address.
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
      report(`Exporting ${table}: ${size(bytes)} so far`);
    }
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Error(
      `Export of ${table} failed: the connection was lost or the export timed out. No file was saved.`,
      { cause: error },
    );
  }
  return new Blob([...parts, ...waiting], { type: response.headers.get("Content-Type") ?? "" });
}
