/** Pages of a long list in the dashboard have no gaps or duplicates, even while rows are inserted and deleted. */
import assert from "node:assert/strict";
import {
  appended,
  endOf,
  PAGE,
  type PageAnswer,
  type PageSpan,
  type PageWindow,
  positioned,
  prepended,
  windowAt,
  withAnswer,
} from "../../dashboard/app/views/data/page_window.ts";

/** The server's response for a page of a list of numbers. A cursor is the number it follows. */
function answerFor(
  list: readonly number[],
  { start, end }: PageSpan,
): PageAnswer & { page: readonly number[] } {
  const after = start === null ? -Infinity : Number(start);
  const rest = list.filter((row) => row > after);
  if (end !== null) {
    const page = rest.filter((row) => row <= Number(end));
    const full = page[PAGE - 1];
    return {
      page,
      rows: page.length,
      continueCursor: end,
      isDone: false,
      ...(page.length > 2 * PAGE && full !== undefined && { splitCursor: String(full) }),
    };
  }
  const page = rest.slice(0, PAGE);
  const isDone = page.length < PAGE;
  return { page, rows: page.length, continueCursor: isDone ? "end" : String(page.at(-1)), isDone };
}

/** Answers requests until none is left, and returns the rows shown. */
function settled(chain: PageWindow, list: readonly number[]): { chain: PageWindow; rows: number[] } {
  for (let now = chain;;) {
    const before = now;
    for (const span of now.spans) now = withAnswer(now, span.id, answerFor(list, span));
    if (now === before) return { chain: now, rows: now.spans.flatMap((span) => answerFor(list, span).page) };
  }
}

const upTo = (count: number) => Array.from({ length: count }, (_, at) => at * 10);

Deno.test("DA9 pages are loaded to the end of the list", () => {
  const list = upTo(250);
  let chain = settled(windowAt(0, null), list).chain;
  for (let step = 0; step < 5; step++) chain = settled(appended(chain), list).chain;
  const { rows } = settled(chain, list);
  assert.deepEqual(rows, list);
  assert.equal(endOf(chain), 250);
  assert.equal(chain.spans.at(-1)?.done, true);
});

Deno.test("DA9 inserts and deletes between pages cause no gaps or duplicates", () => {
  let list = upTo(300);
  let chain = windowAt(0, null);
  for (let step = 0; step < 3; step++) chain = appended(settled(chain, list).chain);
  const changes: readonly ((list: readonly number[]) => number[])[] = [
    (list) => [-5, ...list],
    (list) => list.filter((row) => row !== 990),
    (list) => list.filter((row) => row < 1000 || row > 1500),
    (list) => [...list, 3001],
    (list) => [...list, ...Array.from({ length: 350 }, (_, at) => 501 + at / 100)].toSorted((a, b) => a - b),
    (list) => list.filter((row) => row > 2500),
    () => [],
  ];
  for (const change of changes) {
    list = change(list);
    for (let step = 0; step < 9; step++) chain = appended(settled(chain, list).chain);
    const { chain: now, rows } = settled(chain, list);
    assert.deepEqual(rows, list, change.toString());
    assert.equal(endOf(now), list.length);
    chain = now;
  }
});

Deno.test("DA9 a list opened in the middle loads in both directions, and visible rows keep their positions", () => {
  const list = upTo(1_000);
  let chain = settled(windowAt(500, "4990"), list).chain;
  assert.deepEqual(positioned(chain).map(({ at }) => at), [500]);
  // Rows were deleted in the meantime, so the previous page is short.
  chain = settled(prepended(chain, "4190"), list).chain;
  assert.deepEqual(positioned(chain).map(({ at, span }) => [at, span.rows]), [[420, 80], [500, 100]]);
  chain = settled(appended(chain), list).chain;
  assert.equal(endOf(chain), 700);
  chain = settled(prepended(chain, null), list).chain;
  assert.equal(chain.base, 0);
  assert.deepEqual(settled(chain, list).rows, list.slice(0, 700));
});

Deno.test("DA9 pages cut short by large documents cause no gaps", () => {
  const list = upTo(40);
  /** Answers with at most three rows. */
  const few = (span: PageSpan): PageAnswer & { page: readonly number[] } => {
    const whole = answerFor(list, span);
    if (whole.page.length <= 3) return whole;
    const page = whole.page.slice(0, 3);
    return { page, rows: 3, continueCursor: String(page[2]), isDone: false };
  };
  const settledFew = (chain: PageWindow): PageWindow => {
    for (let now = chain;;) {
      const before = now;
      for (const span of now.spans) now = withAnswer(now, span.id, few(span));
      if (now === before) return now;
    }
  };
  let chain = settledFew(windowAt(20, "190"));
  chain = settledFew(prepended(chain, null));
  for (let step = 0; step < 10; step++) chain = settledFew(appended(chain));
  assert.equal(chain.base, 0);
  assert.deepEqual(chain.spans.flatMap((span) => few(span).page), list);
});
