/** The reports of `syncline dev` about types: one of each edit, with the code and a hint. */
import assert from "node:assert/strict";
import { TypeReports } from "../../mod/npm/node/type_report.ts";
import { TempFolder } from "../support/temp_folder.ts";

const CODE = `import { readFile } from "node:fs/promises";
export const wrong: string = 1;
`;

Deno.test("[NP3] a report has position, code and hint, and omits deleted files", async () => {
  await using folder = await TempFolder.with({ "functions/notes.ts": CODE });
  const reports = new TypeReports(folder.at());
  const done = (lines: readonly string[]) =>
    lines.map((line) => reports.add(line)).find((text) => text !== null);
  assert.equal(
    done([
      "12:00:00 - Starting compilation in watch mode...",
      "",
      "functions/notes.ts(1,26): error TS2591: Cannot find name 'node:fs/promises'. Do you need to install type definitions for node?",
      "functions/notes.ts(2,14): error TS2322: Type 'number' is not assignable to type 'string'.",
      `error TS6053: File '${folder.at("functions/gone.ts")}' not found.`,
      "  The file is in the program because:",
      "12:00:01 - Found 3 errors. Watching for file changes.",
    ]),
    `functions/notes.ts(1,26): error TS2591: Cannot find name 'node:fs/promises'. Do you need to install type definitions for node?
  1 | import { readFile } from "node:fs/promises";
    |                          ^
  Hint: node:fs/promises throws in functions, which have no files and processes. Store files with ctx.storage
functions/notes.ts(2,14): error TS2322: Type 'number' is not assignable to type 'string'.
  2 | export const wrong: string = 1;
    |              ^
2 type errors; the code is served anyway`,
  );
  assert.match(
    done([
      "functions/notes.ts(2,1): error TS7022: 'a' implicitly has type 'any' because it is referenced in its own initializer.",
      "12:00:02 - Found 1 error. Watching for file changes.",
    ]) ?? "",
    /Hint: its type depends on itself through `api`/,
  );
  assert.match(
    done([
      "functions/notes.ts(2,1): error TS2339: Property 'length' does not exist on type 'Promise<{ text: string; }[]>'.",
      "12:00:02 - Found 1 error. Watching for file changes.",
    ]) ?? "",
    /Hint: write `await` before the call/,
  );
  assert.equal(done(["12:00:03 - Found 0 errors. Watching for file changes."]), "");
});
