/** Streams against a simple model: random chunks and ends, and readers that start, stop, resume and read on followers. */
import assert from "node:assert/strict";
import { ServiceError } from "../../mod/errors.ts";
import { anonymous } from "../../mod/functions/identity.ts";
import type { Outcome } from "../../mod/functions/outcome.ts";
import { streamLimits } from "../../mod/streams/limits.ts";
import { FollowedStreams, type StoreFile, streamRoutes, Streams } from "../../mod/streams/mod.ts";
import { randomOf } from "../client/support/random.ts";
import { FakeClock, settled } from "../support/fake_clock.ts";

const { keptMs, checkMs, streamBytesMax, chunkBytesMax, perActionMax, streamsMax, readersMax, followedMax } =
  streamLimits;

/** A running action, and its calls of `ctx`. */
class TestAction {
  readonly #streams: Streams;
  readonly #ended = Promise.withResolvers<void>();

  constructor(streams: Streams) {
    this.#streams = streams;
  }

  async call(name: string, args: Record<string, unknown>): Promise<unknown> {
    const action = this.#streams.actions.get(`_ctx/streams:${name}`);
    const caller = { calledBy: "answers:write", callerEnded: this.#ended.promise };
    const outcome: Outcome | undefined = await action?.run(args, anonymous, caller);
    if (outcome?.ok !== true) {
      throw Object.assign(new Error(outcome?.error.message), { code: outcome?.error.data?.code });
    }
    return JSON.parse(outcome.value);
  }

  create(options: { readonly store?: boolean } = {}): Promise<string> {
    return this.call("create", { contentType: "text/plain", name: null, store: true, ...options }) as Promise<
      string
    >;
  }

  async end(): Promise<void> {
    this.#ended.resolve();
    await settled();
  }
}

class World {
  readonly clock = new FakeClock();
  readonly stored: string[] = [];
  readonly streams: Streams;
  readonly followed: FollowedStreams;
  readonly #routes;
  readonly #followerRoutes;
  /** While set, requests of the follower fail. */
  isCut = false;
  upstream = 0;

  constructor(store?: StoreFile) {
    this.streams = new Streams(
      store ?? ((file) => {
        this.stored.push(new TextDecoder().decode(file.content));
        return Promise.resolve(`file ${this.stored.length}`);
      }),
      this.clock,
    );
    const { streams } = this;
    const routes = { readers: () => streams.readers, headers: {} };
    this.#routes = streamRoutes({ ...routes, find: (id) => streams.find(id) });
    this.followed = new FollowedStreams(async (path) => {
      if (this.isCut) throw new Error("The leader is away");
      this.upstream++;
      return await this.#routes.request(path.replace("/api/streams", ""));
    }, this.clock);
    const { followed } = this;
    this.#followerRoutes = streamRoutes({ ...routes, find: (id) => followed.find(id) });
  }

  get(id: string, { offset = 0, follower = false } = {}): Promise<Response> {
    return Promise.resolve(
      (follower ? this.#followerRoutes : this.#routes).request(`/${id}?offset=${offset}`),
    );
  }

  end(): void {
    this.followed[Symbol.dispose]();
    this.streams[Symbol.dispose]();
  }
}

/** A client that reads as the reference client does: continues at its offset until the end or a refusal. */
class Reader {
  text = "";
  state: "reading" | "done" | "failed" = "reading";
  #stop: (() => void) | null = null;
  readonly #world: World;
  readonly #id: string;
  readonly loop: Promise<void>;

  constructor(world: World, id: string) {
    this.#world = world;
    this.#id = id;
    this.loop = this.#run();
  }

  /** Loses the connection. */
  drop(): void {
    this.#stop?.();
  }

  async #run(): Promise<void> {
    for (let n = 0; this.state === "reading"; n++) {
      const response = await this.#world.get(this.#id, { offset: this.text.length, follower: n % 2 === 1 });
      if (!response.ok) {
        await response.body?.cancel();
        // Followers find out a little later.
        if (response.status >= 500) await this.#pause();
        else this.state = "failed";
        continue;
      }
      const reader = response.body!.getReader();
      let dropped = false;
      this.#stop = () => {
        dropped = true;
        void reader.cancel().catch(() => {});
      };
      try {
        for (let part = await reader.read(); !part.done; part = await reader.read()) {
          this.text += new TextDecoder().decode(part.value);
        }
        const state = response.headers.get("syncline-stream");
        if (!dropped && state !== "open") this.state = state === "ended" ? "done" : "failed";
      } catch {
        // Continues with the next request.
      }
      this.#stop = null;
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => void this.#world.clock.after(50, resolve));
  }
}

Deno.test("SM1 SM2 SM3 each reader receives all bytes once and in order, and then the end", async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const random = randomOf(seed);
    const below = (limit: number) => Math.floor(random() * limit);
    const world = new World();
    const action = new TestAction(world.streams);
    const id = await action.create();
    const readers: Reader[] = [];
    let written = "";
    for (let step = 0; step < 60; step++) {
      const kind = below(8);
      if (kind < 3) {
        const text = String.fromCharCode(97 + below(26)).repeat(1 + below(300));
        written += text;
        await action.call("write", { stream: id, text });
      } else if (kind === 3 && readers.length < 8) readers.push(new Reader(world, id));
      else if (kind === 4) readers[below(readers.length + 1)]?.drop();
      else if (kind === 5) world.isCut = !world.isCut;
      else await world.clock.advance(below(400));
    }
    world.isCut = false;
    const ends = below(3);
    if (ends === 0) assert.equal(await action.call("end", { stream: id }), "file 1");
    else if (ends === 1) await action.call("fail", { stream: id });
    await action.end();
    await world.clock.advance(20_000);
    const expected = { text: written, state: ends === 0 ? "done" : "failed" };
    for (const { text, state } of readers) assert.deepEqual({ text, state }, expected, `seed ${seed}`);
    assert.deepEqual(world.stored, ends === 0 ? [written] : []);
    await world.clock.advance(keptMs + checkMs);
    assert.equal((await world.get(id)).status, 404);
    assert.deepEqual(world.streams.summary, { open: 0, ended: 0, readers: 0, bytes: 0, newest: [] });
    world.end();
  }
});

Deno.test("SM1 SM4 a stream ends after its only file is stored", async () => {
  const stored = Promise.withResolvers<string>();
  const files: string[] = [];
  const world = new World(({ content }) => {
    files.push(new TextDecoder().decode(content));
    return stored.promise;
  });
  const action = new TestAction(world.streams);
  const id = await action.create();
  await action.call("write", { stream: id, text: "all" });
  const reader = new Reader(world, id);
  const ending = action.call("end", { stream: id });
  await assert.rejects(action.call("end", { stream: id }), { code: "stream_ended" });
  await assert.rejects(action.call("write", { stream: id, text: " more" }), { code: "stream_ended" });
  await action.call("fail", { stream: id });
  await action.end();
  await world.clock.advance(0);
  assert.deepEqual([reader.text, reader.state], ["all", "reading"], "the file is not stored yet");
  stored.resolve("file 1");
  assert.equal(await ending, "file 1");
  await world.clock.advance(0);
  assert.deepEqual([reader.text, reader.state, files], ["all", "done", ["all"]]);
  world.end();
});

Deno.test("SM4 the streams of an action that has ended or died end with an error", async () => {
  const world = new World();
  const [action, other] = [new TestAction(world.streams), new TestAction(world.streams)];
  const [left, done, going] = [await action.create(), await action.create(), await other.create()];
  await action.call("write", { stream: left, text: "half" });
  await action.call("end", { stream: done });
  await action.end();
  const response = await world.get(left);
  const reader = response.body!.getReader();
  assert.equal(new TextDecoder().decode((await reader.read()).value), "half");
  assert.equal((await reader.read()).done, true);
  const states = await Promise.all(
    [left, done, going].map(async (id) => (await world.get(id)).headers.get("syncline-stream")),
  );
  assert.deepEqual(states, ["failed", "ended", "open"]);
  await other.call("write", { stream: going, text: "on" });
  await assert.rejects(other.call("write", { stream: left, text: "late" }), { code: "stream_ended" });
  world.end();
});

Deno.test("SM4 a stream that cannot be stored ends with an error", async () => {
  const world = new World(() => Promise.reject(new ServiceError("disk_full")));
  const action = new TestAction(world.streams);
  const id = await action.create();
  await assert.rejects(action.call("end", { stream: id }), { code: "disk_full" });
  assert.equal((await world.get(id)).headers.get("syncline-stream"), "failed");
  const unstored = await action.create({ store: false });
  assert.equal(await action.call("end", { stream: unstored }), null);
  world.end();
});

Deno.test("SM5 sizes and numbers are limited, and ended streams free their slots", async () => {
  const world = new World();
  const action = new TestAction(world.streams);
  const id = await action.create();
  const bytes = new Uint8Array(chunkBytesMax).toBase64();
  for (let size = 0; size < streamBytesMax; size += chunkBytesMax) {
    await action.call("write", { stream: id, bytes });
  }
  await assert.rejects(action.call("write", { stream: id, text: "x" }), { code: "stream_too_large" });
  assert.equal(world.streams.summary.newest[0]?.state, "failed");
  await assert.rejects(action.call("write", { stream: "other", text: "x" }), { code: "stream_ended" });
  await assert.rejects(
    action.call("create", { contentType: "text/html\r\nx: y", name: null, store: false }),
    {
      code: "invalid_content_type",
    },
  );
  for (let n = 0; n < perActionMax; n++) await action.create();
  await assert.rejects(action.create(), { code: "too_many_streams" });
  const open: string[] = [];
  await action.end();
  for (;;) {
    const next = new TestAction(world.streams);
    const stream = await next.create();
    open.push(stream);
    const error = await (async () => {
      for (let size = 0; size < streamBytesMax / 2; size += chunkBytesMax) {
        await next.call("write", { stream, bytes });
      }
    })().catch((error) => error);
    if (error !== undefined) {
      assert.equal(error.code, "overloaded");
      break;
    }
    assert.ok(open.length < 100);
  }
  assert.ok(world.streams.summary.bytes <= streamLimits.totalBytesMax);
  assert.equal((await world.get(id)).status, 404, "the ended stream made room");
  world.end();
});

Deno.test("SM5 the numbers of streams and of responses are limited", async () => {
  const world = new World();
  const actions: TestAction[] = [];
  let id = "";
  for (let n = 0; n < streamsMax; n++) {
    if (n % perActionMax === 0) actions.push(new TestAction(world.streams));
    id = await actions.at(-1)!.create({ store: false });
  }
  const next = new TestAction(world.streams);
  await assert.rejects(next.create(), { code: "overloaded" });
  assert.equal(world.streams.summary.open, streamsMax);
  await actions[0]?.end();
  await next.create();
  const find = (id: string) => world.streams.find(id);
  const full = streamRoutes({ find, readers: () => readersMax, headers: {} });
  assert.equal((await full.request(`/${id}`)).status, 503);
  world.end();
});

Deno.test("SM5 a slow response outlives the expiry of its stream, until others need the memory", async () => {
  const world = new World();
  const action = new TestAction(world.streams);
  const id = await action.create({ store: false });
  for (let n = 0; n < 4; n++) await action.call("write", { stream: id, text: "x".repeat(100_000) });
  const slow = (await world.get(id)).body!.getReader();
  const slower = (await world.get(id)).body!.getReader();
  let size = (await slow.read()).value!.length;
  await slower.read();
  await action.call("end", { stream: id });
  await world.clock.advance(keptMs + 2 * checkMs);
  assert.equal((await world.get(id)).status, 404);
  assert.deepEqual([world.streams.readers, world.streams.summary.ended], [2, 1]);
  for (let part = await slow.read(); !part.done; part = await slow.read()) size += part.value.length;
  assert.equal(size, 400_000);
  await Promise.all(Array.from({ length: 20 }, async () => {
    const stream = await action.create({ store: false });
    const bytes = new Uint8Array(chunkBytesMax).toBase64();
    for (let size = 0; size < streamBytesMax; size += chunkBytesMax) {
      await action.call("write", { stream, bytes }).catch(() => {});
    }
  }));
  assert.deepEqual([world.streams.readers, world.streams.summary.ended], [0, 0]);
  await assert.rejects(slower.read(), /was dropped/);
  await action.end();
  world.end();
});

Deno.test("SM2 offsets that no stream has are refused", async () => {
  const world = new World();
  const action = new TestAction(world.streams);
  const id = await action.create({ store: false });
  await action.call("write", { stream: id, text: "abc" });
  for (const offset of [-1, 0.5, NaN]) assert.equal((await world.get(id, { offset })).status, 400);
  await action.call("end", { stream: id });
  assert.equal((await world.get(id, { offset: 4 })).status, 400);
  assert.equal(await (await world.get(id, { offset: 3 })).text(), "");
  assert.equal(await (await world.get(id, { offset: 1 })).text(), "bc");
  assert.equal((await world.get("unknown")).status, 404);
  world.end();
});

Deno.test("SM6 a follower reads each stream once for all of its readers", async () => {
  const world = new World();
  const action = new TestAction(world.streams);
  const id = await action.create({ store: false });
  await action.call("write", { stream: id, text: "to all" });
  const texts = Promise.all(
    Array.from({ length: 20 }, async () => await (await world.get(id, { follower: true })).text()),
  );
  await settled();
  await action.call("end", { stream: id });
  await world.clock.advance(1_000);
  assert.deepEqual(new Set(await texts), new Set(["to all"]));
  assert.equal(world.upstream, 2, "the content, and then its end");
  assert.equal((await world.get("unknown", { follower: true })).status, 404);
  world.end();
});

Deno.test("SM6 a follower reads as many open streams as its limit, and refuses another one", async () => {
  const world = new World();
  const actions = [
    new TestAction(world.streams),
    new TestAction(world.streams),
    new TestAction(world.streams),
  ];
  const ids: string[] = [];
  for (let n = 0; n <= followedMax; n++) {
    ids.push(await actions[Math.floor(n / perActionMax)]!.create({ store: false }));
  }
  const last = ids.pop()!;
  const texts = ids.map(async (id) => await (await world.get(id, { follower: true })).text());
  await settled();
  assert.equal((await world.get(last, { follower: true })).status, 503);
  for (const [n, id] of ids.entries()) {
    const action = actions[Math.floor(n / perActionMax)]!;
    await action.call("write", { stream: id, text: `text ${n}` });
  }
  await settled();
  for (const action of actions) await action.end();
  await world.clock.advance(1_000);
  assert.deepEqual(await Promise.all(texts), ids.map((_, n) => `text ${n}`));
  world.end();
});

Deno.test("SM3 responses end before a server stops, and an action that ends in time stores its file", async () => {
  for (const follower of [false, true]) {
    const world = new World();
    const action = new TestAction(world.streams);
    const id = await action.create();
    await action.call("write", { stream: id, text: "first " });
    const response = await world.get(id, { follower });
    const text = response.text();
    await settled();
    if (follower) world.followed.endReaders();
    else world.streams.endReaders();
    await settled();
    assert.deepEqual([await text, response.headers.get("syncline-stream")], ["first ", "open"]);
    assert.equal((await world.get(id, { offset: 6, follower })).status, 503, "another server may have it");
    await action.call("write", { stream: id, text: "last" });
    await action.call("end", { stream: id });
    assert.deepEqual(world.stored, ["first last"]);
    world.end();
  }
});
