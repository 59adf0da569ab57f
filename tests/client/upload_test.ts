/** `client.upload`: the request, its progress, and how it fails. */
import assert from "node:assert/strict";
import { uploadWith } from "../../mod/client/http/upload.ts";

const URL_OF_SERVER = "http://host.test/api/storage/upload?token=t";
const answering = (status: number, answer: string): typeof fetch => () =>
  Promise.resolve(new Response(answer, { status }));

Deno.test("a file is sent with its name, and the id of the stored file is returned", async () => {
  const requests: Request[] = [];
  const upload = uploadWith((input, init) => {
    requests.push(new Request(input, init));
    return Promise.resolve(Response.json({ storageId: "abc" }));
  });
  const sent: number[] = [];
  const file = new File(["hello"], "a b.txt", { type: "text/plain" });
  assert.equal(await upload(URL_OF_SERVER, file, { onProgress: (bytes) => sent.push(bytes) }), "abc");
  assert.equal(await upload(URL_OF_SERVER, new Blob(["x"]), {}), "abc");
  const [first, second] = requests;
  assert.equal(first?.url, `${URL_OF_SERVER}&filename=a%20b.txt`);
  assert.equal(first.method, "POST");
  assert.equal(first.headers.get("content-type"), "text/plain");
  assert.equal(await first.text(), "hello");
  assert.equal(second?.url, URL_OF_SERVER);
  assert.deepEqual(sent, [5]);
});

Deno.test("a refused upload rejects with the message of the server, or with the status", async () => {
  const refused = uploadWith(answering(413, JSON.stringify({ errorMessage: "The file is too large" })));
  await assert.rejects(refused(URL_OF_SERVER, new Blob(["x"]), {}), { message: "The file is too large" });
  const proxy = uploadWith(answering(502, "<html>"));
  await assert.rejects(proxy(URL_OF_SERVER, new Blob(["x"]), {}), {
    message: "The server responded with status 502",
  });
});

Deno.test("an aborted upload rejects with the reason of the signal", async () => {
  const signal = AbortSignal.abort(new Error("Stopped by the user"));
  const upload = uploadWith((input, init) => fetch(new Request(input, init)));
  await assert.rejects(upload(URL_OF_SERVER, new Blob(["x"]), { signal }), {
    message: "Stopped by the user",
  });
});

/** The part of XMLHttpRequest that uploads use. */
class FakeRequest {
  static readonly sent: FakeRequest[] = [];
  readonly upload: { onprogress?: (event: { loaded: number }) => void } = {};
  status = 200;
  responseText = "";
  aborted = false;
  onload?: () => void;
  onerror?: () => void;
  onabort?: () => void;
  onloadend?: () => void;
  open(): void {}
  send(): void {
    FakeRequest.sent.push(this);
  }
  abort(): void {
    this.aborted = true;
    this.onabort?.();
    this.onloadend?.();
  }
}

Deno.test("in browsers an upload reports its progress, and can be aborted while it is sent", async () => {
  Object.defineProperty(globalThis, "XMLHttpRequest", { value: FakeRequest, configurable: true });
  try {
    const upload = uploadWith();
    const progress: number[] = [];
    const done = upload(URL_OF_SERVER, new Blob(["12345"]), { onProgress: (bytes) => progress.push(bytes) });
    const [first] = FakeRequest.sent;
    assert.ok(first !== undefined);
    first.upload.onprogress?.({ loaded: 2 });
    first.upload.onprogress?.({ loaded: 5 });
    first.responseText = JSON.stringify({ storageId: "abc" });
    first.onload?.();
    assert.equal(await done, "abc");
    assert.deepEqual(progress, [2, 5]);

    const stop = new AbortController();
    const stopped = upload(URL_OF_SERVER, new Blob(["12345"]), { signal: stop.signal });
    stop.abort(new Error("Stopped by the user"));
    await assert.rejects(stopped, { message: "Stopped by the user" });
    assert.equal(FakeRequest.sent[1]?.aborted, true);

    const lost = upload(URL_OF_SERVER, new Blob(["12345"]), {});
    FakeRequest.sent[2]?.onerror?.();
    await assert.rejects(lost, { message: "Cannot reach the server to upload the file" });
  } finally {
    Reflect.deleteProperty(globalThis, "XMLHttpRequest");
  }
});
