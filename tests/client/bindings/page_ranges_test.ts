/** The pages of a list, without a server. */
import assert from "node:assert/strict";
import { listPagesMax } from "../../../mod/client/bindings/limits.ts";
import {
  balanced,
  firstPage,
  type LoadedPage,
  withNextPage,
} from "../../../mod/client/bindings/page_ranges.ts";

/** A page from one position to another; the last one has no end. */
function page(
  cursor: number | null,
  end: number | null,
  details: { rows: number; split?: number },
): LoadedPage {
  const { rows, split } = details;
  return {
    range: {
      cursor: cursor === null ? null : String(cursor),
      endCursor: end === null ? null : String(end),
      numItems: 10,
    },
    result: {
      page: new Array(rows).fill({}),
      isDone: end === null,
      continueCursor: String(end ?? 99),
      ...split !== undefined && { splitCursor: String(split) },
    },
  };
}

const borders = (ranges: ReturnType<typeof balanced>) =>
  ranges?.map(({ cursor, endCursor }) => `${cursor ?? ""}-${endCursor ?? ""}`);

Deno.test("another page starts where the last one ends now", () => {
  const next = withNextPage([page(null, 5, { rows: 5 }), page(5, null, { rows: 10 })], 3);
  assert.deepEqual(borders(next), ["-5", "5-99", "99-"]);
  assert.deepEqual(next.map(({ numItems }) => numItems), [10, 10, 3]);
  assert.deepEqual(withNextPage([], 3), [firstPage(3)]);
});

Deno.test("a grown page is split, small neighbors are merged, the last page is unchanged", () => {
  assert.equal(balanced([page(null, 5, { rows: 20 }), page(5, null, { rows: 0 })]), null);
  assert.equal(balanced([page(null, 5, { rows: 3 }), page(5, 9, { rows: 3 })]), null);
  assert.deepEqual(
    borders(
      balanced([page(null, 5, { rows: 21, split: 3 }), page(5, 7, { rows: 2 }), page(7, 9, { rows: 3 })]),
    ),
    ["-3", "3-5", "5-9"],
  );
  // Three small pages: two are merged, and the third when the size of the merged one is known.
  const small = [page(null, 1, { rows: 0 }), page(1, 2, { rows: 0 }), page(2, 3, { rows: 0 })];
  assert.deepEqual(borders(balanced(small)), ["-2", "2-3"]);
});

Deno.test("splitting never creates more pages than a list may have", () => {
  const large = (n: number) => page(2 * n, 2 * n + 2, { rows: 30, split: 2 * n + 1 });
  const pages = Array.from({ length: listPagesMax - 1 }, (_, n) => large(n));
  assert.equal(balanced(pages)?.length, listPagesMax);
  assert.equal(balanced([...pages, large(999)]), null);
});
