/** Upload bodies as their readers see them. */
import assert from "node:assert/strict";
import { requestChunks } from "../../mod/storage/uploads/request_chunks.ts";
import { pause } from "../support/waiting.ts";

Deno.test("time spent writing to disk does not count as a stalled upload", async () => {
  const chunks = ["a", "b", "c"].map((text) => new TextEncoder().encode(text));
  const body = ReadableStream.from(chunks);
  const received: Uint8Array[] = [];
  for await (const chunk of requestChunks(body, { contentLength: 3, stallMs: 10 })) {
    await pause(60);
    received.push(chunk.slice());
  }
  assert.deepEqual(received, chunks);
});
