/** Paths below folders, also below the root. */
import assert from "node:assert/strict";
import { isInside, nameBelow } from "../../../mod/functions/packages/package_roots.ts";

Deno.test("a name below a folder is relative to it, also below the root", () => {
  assert.equal(nameBelow("/", "/functions/notes.ts"), "functions/notes.ts");
  assert.equal(nameBelow("/app", "/app/functions/notes.ts"), "functions/notes.ts");
});

Deno.test("a folder contains itself and its descendants, not siblings with the same prefix", () => {
  for (
    const [folder, path, is] of [
      ["/app", "/app", true],
      ["/app", "/app/a", true],
      ["/app", "/apple/a", false],
      ["/", "/apple", true],
    ] as const
  ) assert.equal(isInside(path, ["/other", folder]), is, `${path} in ${folder}`);
});
