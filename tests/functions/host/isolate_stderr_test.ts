/** The logged part of an isolate's last output: the reason for its end, and nothing of its command line. */
import assert from "node:assert/strict";
import { IsolateStderr } from "../../../mod/functions/host/process/isolate_stderr.ts";

async function read(...pieces: string[]) {
  const logged: string[] = [];
  const stream = ReadableStream.from(pieces.map((piece) => new TextEncoder().encode(piece)));
  const text = new IsolateStderr(stream, { now: () => 0, log: (text) => logged.push(text) });
  await text.ended;
  return { text: text.text, summary: text.summary, logged };
}

const NOTE = "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";

Deno.test("of an abort the line with the reason is logged, not the hint how to get more", async () => {
  const { summary, logged } = await read("memory allocation of 1048576 bytes failed\n", NOTE);
  assert.deepEqual([summary, logged], ["memory allocation of 1048576 bytes failed", []]);
  assert.equal((await read("the last word\n", NOTE)).summary, "the last word");
});

Deno.test("of a panic the reason is logged, and the command line is omitted, however long and in how many pieces", async () => {
  const args = Array.from({ length: 500 }, (_, i) => `"--allow-read=/secret/folder/${i}"`).join(", ");
  const pieces = [
    "\n====\nDeno has panicked. This is a bug in Deno. Please report this\nat https://github.com/denoland/deno/issues/new.\n",
    "\nPlatform: linux x86_64\nVersion: 2.9.6\nArgs: [",
    args.slice(0, 5_000),
    `${args.slice(5_000)}, "out of memory"]\n`,
    "\nView stack trace at:\nhttps://panic.example.com/v2.9.6\n\n",
    "thread 'main' (7) panicked at libs/core/ops.rs:155:3:\nno such op\n",
    NOTE,
  ];
  for (const way of [pieces, [pieces.join("")]]) {
    const { text, summary, logged } = await read(...way);
    assert.equal(summary, "panicked: no such op");
    assert.deepEqual(logged, []);
    assert.doesNotMatch(text, /secret|out of memory/);
  }
});
