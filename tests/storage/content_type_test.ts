/** Which texts are content types, whatever is sent instead of one. */
import assert from "node:assert/strict";
import { isContentType } from "../../mod/storage/content_type.ts";

Deno.test("UP8 spaces around parameters are taken, and parameters may be missing", () => {
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

Deno.test("UP8 a text that is almost a content type is refused as fast as any other", () => {
  const refusing = () => {
    const began = performance.now();
    for (const part of [";   ", ";", " ; ", "; a=b  ", '; a="b"  ', "; a=b ;  "]) {
      // Shorter than the limit, so that one that takes exponential time ends within a few seconds.
      assert.equal(isContentType(`a/b${part.repeat(13)}(`), false);
    }
    return performance.now() - began;
  };
  // The least of several: a busy machine only ever adds.
  assert.ok(Math.min(...Array.from({ length: 5 }, refusing)) < 500);
});
