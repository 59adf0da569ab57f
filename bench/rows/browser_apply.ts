/** Time to apply a Transition that changes one row of a long list in Chromium, from the frame to the subscriber. */
import { withClientPage } from "../../tests/client/browser/support/client_page.ts";
import { median } from "../support/statistics.ts";
import type { Row } from "../table.ts";

const ROWS = 10_000;
const CHANGES = 500;
/** Maximum time of a change, as a share of the time to parse the whole list. */
const SHARE_MAX = 0.5;

type ClientModule = typeof import("../../mod/client/mod.ts");

interface Times {
  /** Milliseconds of each change. */
  readonly apply: number[];
  /** Milliseconds to parse the whole list. */
  readonly parse: number[];
}

/** Runs in the page. */
async function measure({ rows, changes }: { rows: number; changes: number }): Promise<Times> {
  const address = "/_/client.js";
  const { SynclineClient }: ClientModule = await import(address);
  type Handler = ((event: { data: string }) => void) | null;
  class TestSocket {
    static last: TestSocket;
    onopen: Handler = null;
    onmessage: Handler = null;
    onclose: Handler = null;
    onerror: Handler = null;
    constructor() {
      TestSocket.last = this;
      setTimeout(() => this.onopen?.({ data: "" }));
    }
    send(): void {}
    close(): void {}
  }
  const client = new SynclineClient(location.origin, { webSocket: TestSocket, polling: false });
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
  TestSocket.last.onmessage?.({ data: frame(1, { value }) });
  if (shown.length !== rows) throw new Error("The subscriber did not receive the list");
  const times: Times = { apply: [], parse: [] };
  const text = JSON.stringify(value);
  for (let change = 1; change <= changes; change++) {
    const at = (change * 7919) % rows;
    const [before, neighbour] = [shown[at], shown[(at + 1) % rows]];
    const ops = [...at > 0 ? [at] : [], { $p: { $o: { s: { n: change } } } }];
    const data = frame(change + 1, { diff: { $a: ops } });
    const startedAt = performance.now();
    TestSocket.last.onmessage?.({ data });
    times.apply.push(performance.now() - startedAt);
    if (shown[at]?.n !== change || shown[at] === before || shown[(at + 1) % rows] !== neighbour) {
      throw new Error(`Change ${change} was applied incorrectly`);
    }
    if (change % 50 !== 0) continue;
    const parseStartedAt = performance.now();
    JSON.parse(text);
    times.parse.push(performance.now() - parseStartedAt);
    await new Promise((resolve) => setTimeout(resolve));
  }
  client.close();
  return times;
}

export async function browserApplyRows(): Promise<Row[]> {
  let times: Times = { apply: [], parse: [] };
  await withClientPage(async ({ page }) => {
    times = await page.evaluate(measure, { rows: ROWS, changes: CHANGES });
  });
  const [applyMs, parseMs] = [median(times.apply), median(times.parse)];
  return [{
    name: `one changed row of a list of ${ROWS}, applied in Chromium`,
    measured: `${applyMs.toFixed(2)} ms`,
    control: `${parseMs.toFixed(2)} ms to parse the list`,
    ratio: applyMs / parseMs,
    target: { atMost: SHARE_MAX },
    details: { ...times },
  }];
}
