import assert from "node:assert/strict";
import { RawHttp } from "./raw_http.ts";

Deno.test("responses of any length on one kept-alive connection have their status and body", async () => {
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const { length } = await request.json();
      return new Response("ä".repeat(length), { status: length === 0 ? 404 : 200 });
    },
  );
  using connection = await RawHttp.connect(server.addr.port);
  for (const length of [0, 1, 10, 8000, 100_000, 3]) {
    const answer = await connection.post("/", JSON.stringify({ length }));
    assert.deepEqual(answer, { status: length === 0 ? 404 : 200, body: "ä".repeat(length) });
  }
});
