/** How far long work is, as people see it. */
import assert from "node:assert/strict";
import { ConsoleProgress } from "../../mod/cli/console_progress.ts";

/** An output for progress, and a clock. */
function world(isTTY: boolean) {
  const clock = { now: 0 };
  const written: string[] = [];
  const terminal = { isTTY, columns: 120, write: (text: string) => written.push(text) };
  const progress = new ConsoleProgress({ terminal, now: () => clock.now });
  const lines = () => written.join("").split("\n").filter((line) => line !== "");
  return { clock, progress, lines, text: () => written.join("") };
}

const MiB = 1024 ** 2;

Deno.test("OP3 without a terminal, a step prints a line at its start and then every two seconds, with rate and remaining time", () => {
  const { clock, progress, lines } = world(false);
  const show = (done: number) => progress.show({ what: "Packing", done, of: 100 * MiB, unit: "bytes" });
  for (let second = 0; second <= 5; second++) {
    clock.now = second * 1_000;
    for (let at = 0; at < 10; at++) show(second * 10 * MiB);
  }
  progress.showStep("Checking the database");
  progress.showStep("Checking the database");
  clock.now += 3_000;
  progress.show({ what: "Emptying messages", done: 7, of: null, unit: "documents" });
  clock.now += 2_000;
  progress.show({ what: "Emptying messages", done: 14, of: null, unit: "documents" });
  progress[Symbol.dispose]();
  assert.deepEqual(lines(), [
    "Packing, 100.0 MiB",
    "Packing: 20.0 MiB of 100.0 MiB, 10.0 MiB/s, about 8 s left",
    "Packing: 40.0 MiB of 100.0 MiB, 10.0 MiB/s, about 6 s left",
    "Checking the database",
    "Emptying messages",
    "Emptying messages: 14 documents, 7 documents/s",
  ]);
});

Deno.test("OP3 on a terminal, a progress bar shows rate and remaining time, and ends with a separate line", () => {
  const { clock, progress, text } = world(true);
  const show = (done: number) => progress.show({ what: "Unpacking", done, of: 8_000, unit: "documents" });
  show(0);
  clock.now = 4_000;
  show(2_000);
  clock.now = 8_000;
  // More than the announced total fills the bar and no more.
  show(9_000);
  progress[Symbol.dispose]();
  // deno-lint-ignore no-control-regex -- what moves the cursor
  const shown = text().replaceAll(/\x1b\[[\d;?]*[A-Za-z]|\x1b[78]/g, "");
  assert.match(shown, /Unpacking \[-+\] 0 % {2}0 documents/);
  assert.match(
    shown,
    /Unpacking \[=+\] 100 % {2}9000 of 8000 documents {2}1125 documents\/s {2}about 0 s left/,
  );
  assert.match(shown, /\n$/);
});
