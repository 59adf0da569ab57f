/** A list that grows page by page and stays live: every page is a subscription, pinned where the next one begins. */

/**
 * Shows the pages of `query`. `onItems` gets the items of all pages in order and whether there are more; it is called
 * when every page has a result.
 */
export class Pages {
  #client;
  #query;
  #args;
  #onItems;
  #onError;
  /** In order: cursor, what the page shows now, and how to end its subscription. */
  #pages = [];

  constructor(client, { query, args, onItems, onError }) {
    this.#client = client;
    this.#query = query;
    this.#args = args;
    this.#onItems = onItems;
    this.#onError = onError;
    this.#append(null);
  }

  /** Adds the next page, if there is one. */
  more() {
    const last = this.#pages.at(-1);
    if (last?.result === undefined || last.result.isDone) return;
    const { continueCursor } = last.result;
    // From now on the page ends where the next one begins, however many items come or go in between.
    this.#subscribe(last, continueCursor);
    this.#append(continueCursor);
  }

  close() {
    for (const page of this.#pages) page.end();
    this.#pages = [];
  }

  #append(cursor) {
    const page = { cursor, result: undefined, end: () => {} };
    this.#pages.push(page);
    this.#subscribe(page, null);
  }

  #subscribe(page, endCursor) {
    const before = page.end;
    page.end = this.#client.subscribe(
      this.#query,
      { ...this.#args, cursor: page.cursor, endCursor },
      (result) => {
        page.result = result;
        this.#show();
      },
      (error) => this.#onError(error),
    );
    before();
  }

  #show() {
    if (this.#pages.some(({ result }) => result === undefined)) return;
    const items = this.#pages.flatMap(({ result }) => result.page);
    this.#onItems(items, !this.#pages.at(-1).result.isDone);
  }
}
