/** A process that replaces an isolate. Its first argument selects the behavior, the second is main's socket. */
import { FrameSender, readFrames } from "../../../../mod/functions/wire/segment_frames.ts";
import type { Boot, BootAnswer } from "../../../../mod/functions/wire/messages.ts";

const print = (text: string) => Deno.stderr.writeSync(new TextEncoder().encode(text));

const [behaviour = "", socketPath = ""] = Deno.args;

if (behaviour === "exit before connecting") {
  print("error: there is no such flag\n");
  Deno.exit(3);
}
if (behaviour === "never connect") await new Promise((resolve) => setTimeout(resolve, 60_000));

const conn = await Deno.connect({ transport: "unix", path: socketPath });
const sender = new FrameSender(conn);
const frames = readFrames<Boot>(conn);
const boot = (await frames.next()).value;

switch (behaviour) {
  case "exit before answering":
    Deno.exit(4);
    break;
  case "broken":
    await sender.send({ type: "Broken", message: "messages.ts:3: nonsense" });
    break;
  case "loaded":
    await sender.send({ type: "Loaded" });
    // Until the test writes zeros into its progress file.
    while (Deno.readFileSync(boot?.message.progressPath ?? "").at(7) !== 0) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await sender.send({ type: "Ready", functions: [], ts: 1, lastGroup: null } satisfies BootAnswer);
    break;
  case "loaded twice":
    await sender.send({ type: "Loaded" });
    await sender.send({ type: "Loaded" });
    break;
  case "loaded after the answer":
    await sender.send({ type: "Ready", functions: [], ts: 1, lastGroup: null } satisfies BootAnswer);
    await sender.send({ type: "Loaded" });
    break;
  case "answer with something else":
    await sender.send({ type: "Pinned", batch: 1, ts: 1 });
    break;
  case "never answer":
    await new Promise((resolve) => setTimeout(resolve, 60_000));
    break;
  case "answer garbage":
    await conn.write(new Uint8Array([0, 0, 0, 3, 120, 121, 122]));
    break;
  case "announce a huge frame":
    await conn.write(new Uint8Array([255, 255, 255, 255]));
    break;
  default:
    await sender.send(
      { type: "Ready", functions: [], ts: 1, lastGroup: JSON.stringify(boot) } satisfies BootAnswer,
    );
}

// It answers every message with itself, unless the message is one of these.
for await (const { message, segments } of frames) {
  const { udfPath } = message as { udfPath?: string };
  if (udfPath === "exit") Deno.exit(0);
  if (udfPath === "close") conn.close();
  if (udfPath === "garbage") await conn.write(new Uint8Array([0, 0, 0, 3, 120, 121, 122]));
  if (udfPath === "print") print("first\nsecond\n");
  if (udfPath === "note") {
    const { progressPath } = boot?.message as { progressPath: string };
    const bytes = new Uint8Array(16);
    new DataView(bytes.buffer).setFloat64(0, 5, true);
    new DataView(bytes.buffer).setFloat64(8, 99, true);
    Deno.writeFileSync(progressPath, bytes, { create: false });
  }
  if (udfPath === "linger") {
    conn.close();
    await new Promise((resolve) => setTimeout(resolve, 60_000));
  }
  await sender.send(message, segments);
}
if (behaviour === "stay") await new Promise((resolve) => setTimeout(resolve, 60_000));
