import assert from "node:assert/strict";
import { stopLimits } from "../../mod/server/limits.ts";
import { type SignalSource, StopSignals } from "../../mod/server/signals.ts";

interface FakeSource extends SignalSource {
  readonly exits: number[];
  clockMs: number;
  send(signal: string): void;
  listening(): number;
}

function fakeSource(): FakeSource {
  const listeners = new Map<string, () => void>();
  const exits: number[] = [];
  return {
    exits,
    clockMs: 0,
    now() {
      return this.clockMs;
    },
    add: (signal, listener) => listeners.set(signal, listener),
    remove: (signal, listener) => listeners.get(signal) === listener && listeners.delete(signal),
    exit: (code) => exits.push(code),
    send: (signal) => listeners.get(signal)?.(),
    listening: () => listeners.size,
  };
}

Deno.test("the first signal stops gracefully, the second ends the process with 128 plus its number", async () => {
  for (
    const [first, second, code] of [["SIGTERM", "SIGINT", 130], ["SIGINT", "SIGTERM", 143], [
      "SIGHUP",
      "SIGHUP",
      129,
    ]] as const
  ) {
    const source = fakeSource();
    using signals = new StopSignals(source);
    source.send(first);
    assert.equal(await signals.first, first);
    assert.deepEqual(source.exits, []);
    source.clockMs = stopLimits.sameSignalMs;
    source.send(second);
    assert.deepEqual(source.exits, [code]);
  }
});

Deno.test("a signal delivered twice counts once, another signal does not", async () => {
  const source = fakeSource();
  using signals = new StopSignals(source);
  source.send("SIGINT");
  assert.equal(await signals.first, "SIGINT");
  source.clockMs = stopLimits.sameSignalMs - 1;
  source.send("SIGINT");
  assert.deepEqual(source.exits, []);
  source.send("SIGTERM");
  assert.deepEqual(source.exits, [143]);
});

Deno.test("disposing stops listening", () => {
  const source = fakeSource();
  new StopSignals(source)[Symbol.dispose]();
  assert.equal(source.listening(), 0);
});
