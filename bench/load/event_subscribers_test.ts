import assert from "node:assert/strict";
import { EventParser } from "./event_subscribers.ts";

const HEAD = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

Deno.test("EventParser returns whole events for any division into reads and chunks", () => {
  const stream = `${HEAD}9\r\nid:1\ndata\r\n4\r\n:a\n\n\r\n8\r\ndata:b\n\n\r\n`;
  for (let size = 1; size <= stream.length; size++) {
    const text = new EventParser();
    const events: string[] = [];
    for (let at = 0; at < stream.length; at += size) events.push(...text.add(stream.slice(at, at + size)));
    assert.deepEqual(events, ["id:1\ndata:a", "data:b"]);
  }
});

Deno.test("EventParser rejects a response with another status", () => {
  assert.throws(() => new EventParser().add("HTTP/1.1 404 Not Found\r\n\r\n"), /404/);
});
