/** The documents that a filter shows, as a file: read page by page, each as it is then. */
import { api, type Where } from "../../server/api.ts";
import { askOnce } from "../../server/ask_once.ts";
import type { WorkSteps } from "../../ui/long_work.ts";
import { count } from "../../ui/texts.tsx";

export type ExportFormat = "jsonl" | "csv";

type Fields = Readonly<Record<string, unknown>>;

interface Page {
  readonly page: readonly Fields[];
  readonly continueCursor: string;
  readonly isDone: boolean;
}

const ROWS = 500;

/** What is read waits as parts of a file, which browsers keep on disk: a table of any length fits. */
export async function exportShown(
  where: Where,
  { format, tell, signal }: WorkSteps & { readonly format: ExportFormat },
): Promise<Blob> {
  const parts: Blob[] = [];
  const columns = new Set(["_id", "_creationTime"]);
  let documents = 0;
  for (let cursor: string | null = null;;) {
    signal.throwIfAborted();
    const args = { ...where, paginationOpts: { cursor, numItems: ROWS } };
    const { page, continueCursor, isDone } = await askOnce(api.data.documents, args as never) as Page;
    for (const document of page) for (const name of Object.keys(document)) columns.add(name);
    parts.push(new Blob([page.map((document) => `${JSON.stringify(document)}\n`).join("")]));
    documents += page.length;
    tell(`${where.table} is exported: ${count(documents)} documents so far`);
    if (isDone) break;
    cursor = continueCursor;
  }
  if (format === "jsonl") return new Blob(parts, { type: "application/x-ndjson" });
  return new Blob([csvLine([...columns]), ...await csvParts(parts, [...columns])], { type: "text/csv" });
}

/** The columns are known at the end only. */
async function csvParts(parts: readonly Blob[], columns: readonly string[]): Promise<Blob[]> {
  const made: Blob[] = [];
  for (const part of parts) {
    const lines = (await part.text()).split("\n").filter((line) => line !== "");
    made.push(
      new Blob(lines.map((line) => {
        const document = JSON.parse(line) as Fields;
        return csvLine(columns.map((name) => cellText(document[name])));
      })),
    );
  }
  return made;
}

/** As the export of a whole table writes it: texts as they are, what is missing or null as nothing, all else as JSON. */
function cellText(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function csvLine(cells: readonly string[]): string {
  const quoted = cells.map((cell) => /[",\r\n\ufeff]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  return `${quoted.join(",")}\r\n`;
}
