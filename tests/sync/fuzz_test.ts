/** Invalid and unusual frames: the server does not crash, and other clients are not affected. */
import assert from "node:assert/strict";
import { Random } from "../sim/support/random.ts";
import { repeats } from "../support/long_runs.ts";
import { settle, TestSocket } from "./support/test_socket.ts";
import { World } from "./support/world.ts";

const frameCount = repeats(30_000, 3_000_000);

const realFrames = [
  '{"type":"Connect","sessionId":"6f9619ff-8b86-d011-b42d-00c04fc964ff","connectionCount":0,"lastCloseReason":null,"clientVersion":"x","features":["diffs"]}',
  '{"type":"ModifyQuerySet","baseVersion":0,"newVersion":1,"modifications":[{"type":"Add","queryId":0,"udfPath":"get","args":{"key":"a"}}]}',
  '{"type":"ModifyQuerySet","baseVersion":0,"newVersion":1,"modifications":[{"type":"Add","queryId":1,"udfPath":"failing","args":{}},{"type":"Remove","queryId":1}]}',
  '{"type":"Mutation","requestId":1,"udfPath":"set","args":{"key":"fuzz","value":[1,{"a":null}]}}',
  '{"type":"Action","requestId":2,"udfPath":"echo","args":{"text":"hello"}}',
  '{"type":"Authenticate","baseVersion":0,"token":"u1.s1"}',
  '{"type":"Authenticate","baseVersion":0,"token":null}',
  '{"type":"Pong"}',
];

/** Pieces that have broken parsers before. */
const pieces = [
  "1e400",
  "-1e400",
  "9007199254740993",
  "-0",
  "1.5",
  "null",
  "true",
  '""',
  '"\\ud800"',
  '"\ud800"',
  '"\\u0000"',
  "\u0000",
  '{"__proto__":{"polluted":1}}',
  '{"constructor":{"prototype":{"polluted":1}}}',
  '{"a":1,"a":2}',
  "[]",
  "{}",
  "[".repeat(500) + "]".repeat(500),
  '{"a":'.repeat(2000) + "1" + "}".repeat(2000),
  '"x'.padEnd(5000, "x") + '"',
  '"type":"Pong",',
  ",",
  "}",
];

function fuzzed(random: Random): string {
  let frame = random.pick(realFrames);
  for (let i = random.below(4); i >= 0; i--) {
    const at = random.below(frame.length + 1);
    switch (random.below(6)) {
      case 0:
        frame = frame.slice(0, at);
        break;
      case 1:
        frame = frame.slice(0, at) + String.fromCharCode(random.below(0x10000)) + frame.slice(at + 1);
        break;
      case 2:
        frame = frame.slice(0, at) + random.pick(pieces) + frame.slice(at);
        break;
      case 3:
        // One value becomes another.
        frame = frame.replace(/(?<=:)("[^"]*"|-?\d+|null|\[\]|\{\})/, () => random.pick(pieces));
        break;
      case 4:
        frame = frame.slice(0, at) + random.pick(realFrames) + frame.slice(at + random.below(20));
        break;
      default:
        frame = frame.replaceAll("args", random.pick(["__proto__", "arg", "args"]));
    }
  }
  return frame;
}

Deno.test("WS15 fuzzed frames crash nothing and affect no other socket", async () => {
  const seed = Number(Deno.env.get("SYNCLINE_FUZZ_SEED") ?? crypto.getRandomValues(new Uint32Array(1))[0]);
  const random = new Random(seed);
  const world = new World({ actions: { echo: (args) => args } });
  const bystander = world.connected();
  bystander.add(0, "get", { key: "watched" });
  let socket = new TestSocket(world.hub);
  let frame = "";
  try {
    for (let i = 0; i < frameCount; i++) {
      frame = fuzzed(random);
      if (socket.closedWith !== null || random.chance(0.02)) {
        socket.drop();
        socket = new TestSocket(world.hub);
      }
      socket.raw(frame);
      if (i % 100 !== 0) continue;
      world.host.write({ watched: i });
      await settle();
      assert.equal(bystander.value(0), i);
      world.hub.validate();
      // Received data does not accumulate in caches.
      bystander.frames.length = 0;
    }
  } catch (error) {
    throw new Error(`seed ${seed}: ${JSON.stringify(frame.slice(0, 500))}`, { cause: error });
  }
  assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  socket.drop();
  bystander.drop();
  await settle();
  assert.equal(world.hub.load.sockets, 0);
  assert.equal(world.hub.load.subscriptions, 0);
});
