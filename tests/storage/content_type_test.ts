/** Validation of content types. */
import assert from "node:assert/strict";
import { isContentType } from "../../mod/storage/stored_file.ts";

Deno.test("UP8 spaces around parameters are accepted, and parameters are optional", () => {
  for (
    const text of [
      "a/b",
      "a/b ",
      "a/b;",
      "a/b ; ",
      "a/b; c=d",
      'a/b ;c="d;\\" e" ; f=g ',
      "a/b;;  ;c=d",
      "a/b ;   ;",
    ]
  ) {
    assert.equal(isContentType(text), true, text);
  }
  for (
    const text of ["", "a", "a/", "a/b c=d", "a/b; c", "a/b; c=", "a/b; c= d", 'a/b; c="', " a/b", "a/b,"]
  ) {
    assert.equal(isContentType(text), false, text);
  }
});

Deno.test("UP8 an almost valid content type is rejected without backtracking", () => {
  const refusing = () => {
    const began = performance.now();
    for (const part of [";   ", ";", " ; ", "; a=b  ", '; a="b"  ', "; a=b ;  "]) {
      // Shorter than the limit, so that an exponential match ends within a few seconds.
      assert.equal(isContentType(`a/b${part.repeat(13)}(`), false);
    }
    return performance.now() - began;
  };
  // The minimum of several runs, because a busy machine only adds time.
  assert.ok(Math.min(...Array.from({ length: 5 }, refusing)) < 500);
});
