/** Writes a table as JSON lines. */
import { opsLimits } from "../../limits.ts";
import type { ExportPiece } from "./export_piece.ts";

/** Yielded among documents after many reads, so that the consumer can do other work. */
export const PAUSE = "";

/** Returns the lines of documents given as JSON. `_id` and `_creationTime` come first, other fields as stored. */
export function* jsonPieces(documents: Iterable<string>): Generator<ExportPiece, void, void> {
  let text = "";
  let count = 0;
  for (const document of documents) {
    if (document === PAUSE) {
      yield { text, documents: count };
      text = "";
      count = 0;
      continue;
    }
    text += `${systemFieldsFirst(document)}\n`;
    count++;
    if (text.length < opsLimits.exportPieceChars) continue;
    yield { text, documents: count };
    text = "";
    count = 0;
  }
  if (count > 0) yield { text, documents: count };
}

const AS_IT_SHOULD_BE = /^\{"_id":"[0-9a-z]+","_creationTime":/;

/** JavaScript orders integer-like field names before all others. */
function systemFieldsFirst(document: string): string {
  if (AS_IT_SHOULD_BE.test(document)) return document;
  const { _id, _creationTime, ...fields } = JSON.parse(document);
  const system = `"_id":${JSON.stringify(_id)},"_creationTime":${JSON.stringify(_creationTime)}`;
  const others = JSON.stringify(fields).slice(1);
  return `{${system}${others === "}" ? "" : ","}${others}`;
}
