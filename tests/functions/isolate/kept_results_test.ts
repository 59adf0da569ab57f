/** Cached results of a reader: main receives the difference to a result that it has, otherwise the whole text. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { fromWire } from "../../../mod/functions/host/outcomes.ts";
import { KeptResults } from "../../../mod/functions/isolate/runs/kept_results.ts";
import { encodeFrameText, frameText, parseFrameText } from "../../../mod/functions/wire/segment_frames.ts";
import type { Outcome } from "../../../mod/functions/outcome.ts";

/** Minimum number of characters of a cached result. */
const LONG = 64 * 1024;
const LONG_PART = "y".repeat(LONG);
const MiB = 1024 * 1024;

type Success = Extract<Outcome, { readonly ok: true }>;

/** Sends a result like a reader and returns the result that main decodes. */
function sent(results: KeptResults, text: string, base: Success | null) {
  const segments: string[] = [];
  const wire = results.send(text, { base: base?.kept ?? "", logLines: [], segments });
  const frame = new TextDecoder().decode(encodeFrameText(frameText(wire, segments)).subarray(4));
  const received = parseFrameText<typeof wire>(frame);
  const outcome = fromWire(received.message, received.segments, base);
  assert.ok(outcome.ok);
  return { outcome, chars: segments.join("").length };
}

Deno.test("main decodes each result of a reader exactly, however it differs from the previous one", () => {
  const piece = fc.oneof(
    fc.constantFrom("", "x".repeat(LONG)),
    fc.string({ maxLength: 5 }),
    // Equal first halves, and equal second halves, of surrogate pairs.
    fc.constantFrom("\u{1F600}", "\u{1F601}", "\u{1FA00}"),
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(piece, piece, piece), { minLength: 2, maxLength: 8 }), (texts) => {
      const results = new KeptResults();
      let base: Success | null = null;
      for (const parts of texts) {
        const text = `[${parts.join(LONG_PART)}]`;
        const { outcome }: { outcome: Success } = sent(results, text, base);
        assert.equal(outcome.value, text);
        base = outcome;
      }
    }),
    { numRuns: 300 },
  );
});

Deno.test("a changed long result is sent as a difference, and an unchanged one without contents", () => {
  const results = new KeptResults();
  const text = "a".repeat(2 * LONG);
  const first = sent(results, text, null);
  assert.equal(first.chars, text.length);
  const changed = sent(results, `${text.slice(0, LONG)}bc${text.slice(LONG)}`, first.outcome);
  assert.equal(changed.chars, 2);
  const same = sent(results, changed.outcome.value, changed.outcome);
  assert.equal(same.chars, 0);
  assert.equal(same.outcome.kept, changed.outcome.kept);
  assert.equal(same.outcome.value, changed.outcome.value);
});

Deno.test("short results, those of another reader, and replaced ones are sent completely", () => {
  const results = new KeptResults();
  const short = sent(results, "[1]", null);
  assert.equal(short.outcome.kept, undefined);
  const text = "a".repeat(3 * MiB);
  const elsewhere = sent(new KeptResults(), text, null).outcome;
  assert.equal(sent(results, text, elsewhere).chars, text.length);
  const oldest = sent(results, `b${text}`, null).outcome;
  for (const letter of ["c", "d"]) sent(results, letter + text, null);
  assert.equal(sent(results, `b${text}`, oldest).chars, text.length + 1);
  assert.equal(sent(results, "a".repeat(9 * MiB), null).outcome.kept, undefined);
});

Deno.test("a difference to a result that main does not have ends the reader", () => {
  const results = new KeptResults();
  const text = "a".repeat(LONG);
  const { outcome } = sent(results, text, null);
  const segments: string[] = [];
  const wire = results.send(`${text}b`, { base: outcome.kept ?? "", logLines: [], segments });
  assert.throws(() => fromWire(wire, segments, null), RangeError);
  assert.throws(() => fromWire(wire, segments, { ...outcome, value: "a" }), RangeError);
});
