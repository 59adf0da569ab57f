/** A table as lines of JSON, one document each. */
import { opsLimits } from "../../limits.ts";
import type { ExportPiece } from "./export_piece.ts";

/** Stands among documents where many were read, meant or not: what takes them does other work there. */
export const PAUSE = "";

/** The lines of documents given as JSON texts. `_id` and `_creationTime` come first, the rest as it is stored. */
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

/** JavaScript puts fields whose names are whole numbers before all others. */
function systemFieldsFirst(document: string): string {
  if (AS_IT_SHOULD_BE.test(document)) return document;
  const { _id, _creationTime, ...fields } = JSON.parse(document);
  const system = `"_id":${JSON.stringify(_id)},"_creationTime":${JSON.stringify(_creationTime)}`;
  const others = JSON.stringify(fields).slice(1);
  return `{${system}${others === "}" ? "" : ","}${others}`;
}
