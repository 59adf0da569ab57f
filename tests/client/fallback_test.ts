/** When the client polls: the state machine of the fallback, without a client. */
import assert from "node:assert/strict";
import { Fallback } from "../../mod/client/connection/fallback.ts";
import { FakeClock, settle } from "./support/fake_clock.ts";

function makeFallback() {
  const clock = new FakeClock();
  const events: string[] = [];
  const probes: ((works: boolean) => void)[] = [];
  const fallback = new Fallback(clock, {
    probe: () => new Promise((resolve) => probes.push(resolve)),
    trySocket: () => events.push("try"),
    pollingBegins: () => events.push("begins"),
    pollingEnds: () => events.push("ends"),
  });
  const connect = (phase: string, unopened = 0) => fallback.connectionChanged({ phase, unopened });
  const answer = async (works: boolean) => {
    probes.at(-1)?.(works);
    await settle();
  };
  return { clock, events, probes, fallback, connect, answer };
}

Deno.test("after three attempts without an open socket, with a server that responds over HTTP, the client polls", async () => {
  const { events, probes, fallback, connect, answer } = makeFallback();
  for (const unopened of [0, 1, 2]) {
    connect("connecting", unopened);
    connect("waiting", unopened + 1);
    assert.equal(probes.length, unopened === 2 ? 1 : 0);
  }
  assert.equal(fallback.phase, "probing");
  await answer(true);
  assert.deepEqual([fallback.phase, events], ["doubting", ["try"]]);
  connect("connecting", 3);
  assert.equal(fallback.phase, "doubting");
  connect("waiting", 4);
  assert.deepEqual([fallback.phase, events], ["polling", ["try", "begins"]]);
  connect("connecting", 4);
  connect("waiting", 5);
  assert.equal(fallback.phase, "polling", "attempts continue");
  connect("connecting", 5);
  connect("open");
  assert.deepEqual([fallback.phase, events], ["off", ["try", "begins", "ends"]]);
});

Deno.test("hanging attempts are detected after 10 s and tolerated for 2 s", async () => {
  const { clock, events, probes, fallback, connect, answer } = makeFallback();
  connect("connecting");
  await clock.advance(9_999);
  assert.equal(probes.length, 0);
  await clock.advance(1);
  assert.equal(probes.length, 1);
  await answer(true);
  await clock.advance(1_999);
  assert.equal(fallback.phase, "doubting");
  await clock.advance(1);
  assert.deepEqual(events, ["try", "begins"]);
  assert.equal(clock.pending, 0);
});

Deno.test("a server that does not answer over HTTP either is tried again after each failed attempt", async () => {
  const { clock, events, probes, fallback, connect, answer } = makeFallback();
  connect("connecting");
  await clock.advance(10_000);
  await answer(false);
  assert.equal(fallback.phase, "off");
  await clock.advance(60_000);
  assert.equal(probes.length, 1, "nothing has changed");
  connect("waiting", 1);
  assert.equal(probes.length, 2);
  connect("connecting", 1);
  connect("waiting", 2);
  assert.equal(probes.length, 2, "one look at a time");
  await answer(true);
  connect("connecting", 2);
  connect("waiting", 3);
  assert.deepEqual(events, ["try", "begins"]);
  fallback.httpFailed();
  assert.deepEqual([fallback.phase, events.at(-1)], ["off", "ends"]);
  connect("connecting", 3);
  connect("waiting", 4);
  assert.equal(fallback.phase, "probing");
});

Deno.test("opening a socket or closing the client ends every state immediately", async () => {
  for (const phase of ["open", "stopped"]) {
    const probing = makeFallback();
    probing.connect("waiting", 3);
    probing.connect(phase);
    await probing.answer(true);
    assert.deepEqual(
      [probing.fallback.phase, probing.events],
      ["off", []],
      "a late answer counts for nothing",
    );

    const doubting = makeFallback();
    doubting.connect("waiting", 3);
    await doubting.answer(true);
    doubting.connect(phase);
    await doubting.clock.advance(60_000);
    assert.deepEqual([doubting.fallback.phase, doubting.events], ["off", ["try"]]);
    assert.equal(doubting.clock.pending, 0);
  }
});

Deno.test("a response to an older poll is ignored", async () => {
  const { probes, fallback, connect } = makeFallback();
  connect("waiting", 3);
  connect("open");
  connect("waiting", 3);
  connect("connecting", 3);
  assert.equal(probes.length, 2);
  probes[0]?.(true);
  await settle();
  assert.equal(fallback.phase, "probing");
});
