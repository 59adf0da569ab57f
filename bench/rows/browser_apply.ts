/** How long a Transition that changes one row of a long list takes in Chromium, from the frame to the subscriber. */
import { withClientPage } from "../../tests/client/browser/support/client_page.ts";
import { median } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const ROWS = 10_000;
const CHANGES = 500;
/** A change costs at most this share of reading the whole list's text, which is what it saves. */
const SHARE_MAX = 0.5;

type ClientModule = typeof import("../../mod/client/mod.ts");

interface Times {
  /** Milliseconds of each change. */
  readonly changed: number[];
  /** Of reading the whole list's text, beside some of them. */
  readonly read: number[];
}

/** Runs in the page. */
async function measure({ rows, changes }: { rows: number; changes: number }): Promise<Times> {
  const address = "/_/client.js";
  const { SynclineClient }: ClientModule = await import(address);
  type Handler = ((event: { data: string }) => void) | null;
  class Line {
    static last: Line;
    onopen: Handler = null;
    onmessage: Handler = null;
    onclose: Handler = null;
    onerror: Handler = null;
    constructor() {
      Line.last = this;
      setTimeout(() => this.onopen?.({ data: "" }));
    }
    send(): void {}
    close(): void {}
  }
  const client = new SynclineClient(location.origin, { webSocket: Line, polling: false });
  let shown: readonly { _id: string; n: number }[] = [];
  client.subscribe("list", {}, (value) => shown = value as typeof shown);
  await new Promise((resolve) => setTimeout(resolve, 50));
  const version = (querySet: number, ts: number) => ({ querySet, identity: 0, ts });
  const frame = (ts: number, update: object) =>
    JSON.stringify({
      type: "Transition",
      startVersion: ts === 1 ? version(0, 0) : version(1, ts - 1),
      endVersion: version(1, ts),
      modifications: [{ type: "QueryUpdated", queryId: 0, ...update, logLines: [] }],
    });
  const value = Array.from({ length: rows }, (_, i) => ({
    _id: `row${i}`,
    _creationTime: 1.7e12 + i,
    title: `The title of row ${i}`,
    owner: { id: `user${i % 50}`, name: "Ada" },
    tags: ["one", "two"],
    n: 0,
  }));
  Line.last.onmessage?.({ data: frame(1, { value }) });
  if (shown.length !== rows) throw new Error("the list is not shown");
  const [changed, read]: [number[], number[]] = [[], []];
  const text = JSON.stringify(value);
  for (let change = 1; change <= changes; change++) {
    const at = (change * 7919) % rows;
    const [before, neighbour] = [shown[at], shown[(at + 1) % rows]];
    const ops = [...at > 0 ? [at] : [], { $p: { $o: { s: { n: change } } } }];
    const data = frame(change + 1, { diff: { $a: ops } });
    const startedAt = performance.now();
    Line.last.onmessage?.({ data });
    changed.push(performance.now() - startedAt);
    if (shown[at]?.n !== change || shown[at] === before || shown[(at + 1) % rows] !== neighbour) {
      throw new Error(`change ${change} is not shown as it should be`);
    }
    if (change % 50 !== 0) continue;
    const readAt = performance.now();
    JSON.parse(text);
    read.push(performance.now() - readAt);
    await new Promise((resolve) => setTimeout(resolve));
  }
  client.close();
  return { changed, read };
}

export async function browserApplyRows(): Promise<Row[]> {
  let times: Times = { changed: [], read: [] };
  await withClientPage(async ({ page }) => {
    times = await page.evaluate(measure, { rows: ROWS, changes: CHANGES });
  });
  const [changedMs, readMs] = [median(times.changed), median(times.read)];
  return [{
    name: `one changed row of a list of ${ROWS}, applied in Chromium`,
    measured: `${changedMs.toFixed(2)} ms`,
    control: `${readMs.toFixed(2)} ms to parse the list`,
    ratio: changedMs / readMs,
    target: { atMost: SHARE_MAX },
    details: { ...times },
  }];
}
