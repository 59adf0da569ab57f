import assert from "node:assert/strict";
import { EventText } from "./event_audience.ts";

const HEAD = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

Deno.test("events are complete however their bytes and chunks are divided", () => {
  const stream = `${HEAD}9\r\nid:1\ndata\r\n4\r\n:a\n\n\r\n8\r\ndata:b\n\n\r\n`;
  for (let size = 1; size <= stream.length; size++) {
    const text = new EventText();
    const events: string[] = [];
    for (let at = 0; at < stream.length; at += size) events.push(...text.add(stream.slice(at, at + size)));
    assert.deepEqual(events, ["id:1\ndata:a", "data:b"]);
  }
});

Deno.test("an answer with another status is no stream of events", () => {
  assert.throws(() => new EventText().add("HTTP/1.1 404 Not Found\r\n\r\n"), /404/);
});
