import assert from "node:assert/strict";
import { requestText } from "../../mod/kit/request_body.ts";

/** A body that arrives in pieces and records whether it was cancelled. */
function streamed(chunks: readonly (string | Error)[], headers: HeadersInit = {}) {
  let cancelled = false;
  const left = [...chunks];
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      const chunk = left.shift();
      if (chunk === undefined) controller.close();
      else if (chunk instanceof Error) controller.error(chunk);
      else controller.enqueue(new TextEncoder().encode(chunk));
    },
    cancel() {
      cancelled = true;
    },
  }, { highWaterMark: 0 });
  const request = new Request("http://test", { method: "POST", body, headers });
  return { request, cancelled: () => cancelled, left };
}

Deno.test("a body of unknown length is counted as it arrives, and cancelled when it is too long", async () => {
  assert.equal(await requestText(streamed(["a", "\u00fc"]).request, 3), "a\u00fc");
  const { request, cancelled, left } = streamed(["aa", "bb", "cc", "dd"]);
  await assert.rejects(requestText(request, 3), { code: "body_too_large" });
  assert.ok(cancelled());
  assert.equal(left.length, 2);
});

Deno.test("a long body of announced length is decoded correctly in pieces of any size", async () => {
  const text = "aé€😀".repeat(50_000);
  const body = new TextEncoder().encode(text);
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => new Response(await requestText(request, body.length)),
  );
  const response = await fetch(`http://127.0.0.1:${server.addr.port}`, { method: "POST", body });
  assert.equal(await response.text(), text);
  await server.shutdown();
});

Deno.test("an announced length over the limit is refused before reading", async () => {
  const { request, left } = streamed(["aa"], { "Content-Length": "4" });
  await assert.rejects(requestText(request, 3), { code: "body_too_large" });
  assert.equal(left.length, 1);
});

Deno.test("an incomplete body is a bad request, not a server error", async () => {
  for (const headers of [{}, { "Content-Length": "10" }]) {
    const { request } = streamed(["a", new Error("reset")], headers);
    await assert.rejects(requestText(request, 100), {
      code: "bad_request",
      message: "The request body was incomplete",
    });
  }
});

Deno.test("bytes that are not UTF-8 are a bad request, not replaced", async () => {
  const bytes = new Uint8Array([0x61, 0xff]);
  const cut = new TextEncoder().encode("a\u20ac").subarray(0, 3);
  const notText = { code: "bad_request", message: "The request body is not UTF-8" };
  for (const body of [bytes, cut]) {
    const headers = { "Content-Length": String(body.length) };
    await assert.rejects(
      requestText(new Request("http://test", { method: "POST", body, headers }), 10),
      notText,
    );
    await assert.rejects(requestText(new Request("http://test", { method: "POST", body }), 10), notText);
  }
});

Deno.test("a missing body and a byte order mark are accepted", async () => {
  assert.equal(await requestText(new Request("http://test", { method: "POST" }), 3), "");
  assert.equal(await requestText(streamed(["\ufeffa"]).request, 10), "a");
});
