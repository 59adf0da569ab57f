/** `client.fileUrl`: links to files and thumbnails, from ids and from links of the server. */
import assert from "node:assert/strict";
import { SynclineClient } from "../../mod/client/mod.ts";

Deno.test("a file's link has the server's address, and the size of a thumbnail", () => {
  const client = new SynclineClient("ws://host.test/app", {
    webSocket: class {
      close() {}
    } as never,
  });
  const signed = "https://files.test/api/storage/abc?exp=1&sig=x";
  assert.deepEqual([
    client.fileUrl("abc"),
    client.fileUrl("abc", { thumb: "200x100", fit: "cover" }),
    client.fileUrl("/api/storage/abc?exp=1&sig=x", { thumb: "50" }),
    client.fileUrl(signed, { download: "1" }),
    client.fileUrl(signed, { thumb: undefined } as never),
  ], [
    "http://host.test/app/api/storage/abc",
    "http://host.test/app/api/storage/abc?thumb=200x100&fit=cover",
    "http://host.test/api/storage/abc?exp=1&sig=x&thumb=50",
    `${signed}&download=1`,
    signed,
  ]);
  client.close();
});
