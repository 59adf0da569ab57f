/** Paths of Windows and macOS, as the functions that take them apart see them. */
import assert from "node:assert/strict";
import {
  isAtOrBelow,
  nameBelow,
  sameOnSomeDisks,
  slashed,
} from "../../../mod/functions/packages/slashed_paths.ts";

Deno.test("[DP15] paths of Windows get slashes, and a backslash in a name elsewhere stays", () => {
  assert.equal(
    slashed("C:\\Users\\Ada\\app\\functions\\notes.ts", "windows"),
    "C:/Users/Ada/app/functions/notes.ts",
  );
  assert.equal(slashed("\\\\server\\share\\app", "windows"), "//server/share/app");
  assert.equal(slashed("/home/ada/a\\b.ts", "linux"), "/home/ada/a\\b.ts");
  assert.equal(slashed("/home/ada/a\\b.ts", "darwin"), "/home/ada/a\\b.ts");
});

Deno.test("[DP15] what is below a folder has no drive in its name, also below a root", () => {
  assert.equal(nameBelow("C:/app", "C:/app/functions/notes.ts"), "functions/notes.ts");
  assert.equal(nameBelow("C:/", "C:/functions/notes.ts"), "functions/notes.ts");
  assert.equal(nameBelow("/", "/functions/notes.ts"), "functions/notes.ts");
  assert.equal(nameBelow("/app", "/app/functions/notes.ts"), "functions/notes.ts");
  for (
    const [folder, path, is] of [
      ["C:/app", "C:/app", true],
      ["C:/app", "C:/app/a", true],
      ["C:/app", "C:/apple/a", false],
      ["C:/", "C:/apple", true],
      ["C:/", "D:/apple", false],
      ["/", "/apple", true],
      ["/app", "/apple", false],
    ] as const
  ) assert.equal(isAtOrBelow(folder, path), is, `${path} in ${folder}`);
});

Deno.test("[DP15] names that are one on a disk of macOS or Windows are found", () => {
  assert.deepEqual(sameOnSomeDisks(["functions/Notes.ts", "functions/a.ts", "functions/notes.ts"]), [
    "functions/Notes.ts",
    "functions/notes.ts",
  ]);
  // One letter, and a letter with a mark.
  assert.deepEqual(sameOnSomeDisks(["\u00e9.ts", "e\u0301.ts"]), ["\u00e9.ts", "e\u0301.ts"]);
  assert.equal(sameOnSomeDisks(["a/b.ts", "a.ts", "b.ts"]), null);
});
