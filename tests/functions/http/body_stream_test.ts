/** Bodies in chunks: they arrive completely and in order, within the receiver's window. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { BodyReceiver, BodySender } from "../../../mod/functions/wire/body_stream.ts";
import {
  encodeBytes,
  FrameSender,
  readFrames,
  type WireFrame,
} from "../../../mod/functions/wire/segment_frames.ts";
import { routeLimits } from "../../../mod/functions/limits.ts";

const { chunkBytesMax, windowBytes } = routeLimits;

/** A sender and a receiver, connected by the test: messages are in `sent` until they are delivered. */
function joined() {
  const sent: Uint8Array<ArrayBuffer>[] = [];
  let canceled = 0;
  const sender: BodySender = new BodySender((bytes) => void sent.push(bytes.slice()));
  const receiver = new BodyReceiver({
    onTaken: (bytes) => sender.taken(bytes),
    onCancel: () => canceled++,
  });
  return {
    sender,
    receiver,
    sent,
    get canceled() {
      return canceled;
    },
    deliver() {
      for (const bytes of sent.splice(0)) receiver.push(bytes);
    },
  };
}

function body(chunks: readonly Uint8Array<ArrayBuffer>[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  return ReadableStream.from(chunks);
}

function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

Deno.test("a body arrives completely, in chunks of bounded size, for all sizes of writes", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(150_000), { maxLength: 8 }), async (sizes) => {
      let next = 0;
      const chunks = sizes.map((size) => Uint8Array.from({ length: size }, () => next++ % 251));
      const pair = joined();
      const pumped = pair.sender.pump(body(chunks));
      const read = new Response(pair.receiver.stream).bytes();
      let done = false;
      pumped.then(() => done = true);
      while (!done) {
        assert(pair.sent.every(({ length }) => length > 0 && length <= chunkBytesMax));
        pair.deliver();
        await turn();
      }
      pair.deliver();
      pair.receiver.end();
      assert.deepEqual(await read, new Uint8Array(chunks.flatMap((chunk) => [...chunk])));
    }),
    { numRuns: 15 },
  );
});

Deno.test("a sender stops without a reader, and continues with one", async () => {
  const pair = joined();
  let pulled = 0;
  const endless = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      pulled++;
      controller.enqueue(new Uint8Array(50_000));
    },
  }, { highWaterMark: 0 });
  const pumped = pair.sender.pump(endless);
  for (let i = 0; i < 30; i++) await turn();
  const onTheWay = pair.sent.reduce((sum, { length }) => sum + length, 0);
  assert(onTheWay <= windowBytes && onTheWay > windowBytes - chunkBytesMax, `${onTheWay} bytes`);
  const before = pulled;
  pair.deliver();
  const reader = pair.receiver.stream.getReader();
  await reader.read();
  await turn();
  await turn();
  assert(pulled > before, "a chunk was taken, so there is room for another one");
  pair.sender.stop("enough");
  assert.equal(await pumped, false);
  await reader.cancel();
  assert.equal(pair.canceled, 1);
});

Deno.test("chunks do not become smaller and smaller when the reader is slow", async () => {
  const pair = joined();
  const chunks = Array.from({ length: 40 }, () => new Uint8Array(100_000));
  const pumped = pair.sender.pump(body(chunks));
  const reading = (async () => {
    for await (const _chunk of pair.receiver.stream) await turn();
  })();
  let sent = 0;
  let done = false;
  pumped.then(() => done = true);
  while (!done) {
    await turn();
    sent += pair.sent.length;
    pair.deliver();
  }
  pair.receiver.end();
  await reading;
  assert(sent <= 2 * chunks.length, `${sent} chunks were sent for ${chunks.length}`);
});

Deno.test("a receiver refuses data that exceed its limit", () => {
  const receiver = new BodyReceiver({ onTaken: () => {}, onCancel: () => {} });
  for (let bytes = 0; bytes < windowBytes; bytes += chunkBytesMax) {
    receiver.push(new Uint8Array(chunkBytesMax));
  }
  assert.throws(() => receiver.push(new Uint8Array(1)), RangeError);
});

Deno.test("an interrupted body is an error for its reader", async () => {
  const pair = joined();
  const reader = pair.receiver.stream.getReader();
  const read = reader.read();
  pair.receiver.fail(new Error("broke off"));
  await assert.rejects(read, /broke off/);
  await assert.rejects(reader.read(), /broke off/);
});

Deno.test("stopping ends the body that is being sent", async () => {
  const pair = joined();
  const canceled = Promise.withResolvers<unknown>();
  const waiting = new ReadableStream<Uint8Array>({ cancel: (reason) => canceled.resolve(reason) });
  const pumped = pair.sender.pump(waiting);
  pair.sender.stop("The client went away");
  assert.equal(await pumped, false);
  assert.equal((await canceled.promise as DOMException).name, "AbortError");
});

Deno.test("a stream that contains other values than bytes fails", async () => {
  const pair = joined();
  const texts = ReadableStream.from(["text"]) as unknown as ReadableStream<Uint8Array>;
  await assert.rejects(pair.sender.pump(texts), /Uint8Array/);
});

Deno.test("binary and text frames keep their order over a socket, in pieces of any size", async () => {
  const path = `${await Deno.makeTempDir()}/s`;
  using listener = Deno.listen({ transport: "unix", path });
  const [to, from] = await Promise.all([Deno.connect({ transport: "unix", path }), listener.accept()]);
  const sender = new FrameSender(to);
  sender.send({ type: "first" });
  sender.sendBytes(7, new Uint8Array([1, 2, 3]));
  sender.sendBytes(4_000_000_000, new Uint8Array(150_000).fill(9));
  await sender.send({ type: "last" }, ["segment"]);
  // Byte by byte, so that headers are divided as well.
  for (const byte of encodeBytes(1, new Uint8Array([5]))) await to.write(new Uint8Array([byte]));
  to.close();
  const frames: WireFrame<{ type: string; call?: number }>[] = [];
  for await (const frame of readFrames<{ type: string; call?: number }>(from)) frames.push(frame);
  from.close();
  assert.deepEqual(frames.map(({ message }) => message), [
    { type: "first" },
    { type: "Bytes", call: 7 },
    { type: "Bytes", call: 4_000_000_000 },
    { type: "last" },
    { type: "Bytes", call: 1 },
  ]);
  assert.deepEqual([...frames[1]?.bytes ?? []], [1, 2, 3]);
  assert.equal(frames[2]?.bytes?.length, 150_000);
  assert.deepEqual(frames[3]?.segments, ["segment"]);
  assert.deepEqual([...frames[4]?.bytes ?? []], [5]);
  await Deno.remove(path.replace(/\/s$/, ""), { recursive: true });
});
