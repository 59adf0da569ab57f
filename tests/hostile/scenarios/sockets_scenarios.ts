/** Sockets that do not read, do not wait, or send useless frames. */
import assert from "node:assert/strict";
import { RawWebSocket } from "../../support/processes/raw_websocket.ts";
import { MemoryWatch } from "../support/memory.ts";
import type { LatencyLimits, Scenario, World } from "../support/scenario.ts";
import { SMALL_WITH_PAGES } from "./flags.ts";

/** Main and the attackers share two processors. */
const SHORT_MS = 5_000;

const KiB = 1024;
const MiB = 1024 * KiB;

/** A guest's socket and its outcome. */
async function guest(port: number): Promise<{ socket: RawWebSocket; gone: () => boolean }> {
  let gone = false;
  const socket = await RawWebSocket.connect({
    port,
    path: "/api/sync",
    onText: () => {},
    onClose: () => {
      gone = true;
    },
  });
  const sessionId = crypto.randomUUID();
  socket.send(
    JSON.stringify({
      type: "Connect",
      sessionId,
      connectionCount: 0,
      lastCloseReason: null,
      clientVersion: "hostile",
    }),
  );
  return { socket, gone: () => gone };
}

/** The limit of the bystander's latency during an operation of this duration. The scenario is about memory. */
function besides(startedAt: number): LatencyLimits {
  const ms = SHORT_MS + performance.now() - startedAt;
  return { queryMs: ms, mutationMs: ms };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Queries of one Transition, and characters of each. */
const RESULTS = 8;
const RESULT_CHARS = 2 * MiB;
const DEAF = 60;

/** As many as runners accept with 64 actions each. */
const HOLDERS = 18;
const HELD_CHARS = MiB;
const HELD_FRAMES = 28;

const FLOODERS = 20;

function call(
  type: "Mutation" | "Action",
  { n, path, args }: { readonly n: number; readonly path: string; readonly args: Record<string, unknown> },
): string {
  return JSON.stringify({ type, requestId: n, udfPath: path, args });
}

/** Guests that send the same frame at the maximum rate and reconnect when they are disconnected. */
async function flooded({ isFull, server: { port } }: World, text: string): Promise<string> {
  const flood = new Worker(new URL("../support/flood_worker.ts", import.meta.url), { type: "module" });
  const done = Promise.withResolvers<string>();
  flood.onmessage = ({ data }) => done.resolve(data);
  flood.postMessage({ port, sockets: FLOODERS, ms: isFull ? 4_000 : 500, text });
  const figure = await done.promise;
  flood.terminate();
  return figure;
}

export const socketScenarios: readonly Scenario[] = [
  {
    rule: "BU1",
    name: `${DEAF} guests that request large results and never read`,
    before: "main grew to 4,483 MiB",
    limits: { queryMs: SHORT_MS, mutationMs: SHORT_MS },
    flags: SMALL_WITH_PAGES,
    attack: async ({ isFull, server: { port, pid } }) => {
      await using watch = await MemoryWatch.start(pid);
      const before = watch.nowMiB;
      const guests = await Promise.all(Array.from({ length: DEAF }, () => guest(port)));
      const modifications = Array.from({ length: RESULTS }, (_, n) => (
        { type: "Add", queryId: n, udfPath: "big:text", args: { n, chars: RESULT_CHARS } }
      ));
      for (const { socket } of guests) {
        socket.pause();
        socket.send(JSON.stringify({ type: "ModifyQuerySet", baseVersion: 0, newVersion: 1, modifications }));
      }
      await pause(isFull ? 6_000 : 2_000);
      // Results without subscribers are cached for a while.
      const backMs = await watch.backBelow(before + 400, 60_000);
      assert(watch.peakMiB < before + 900, `main grew to ${watch.peakMiB.toFixed(0)} MiB`);
      for (const { socket } of guests) socket.cut();
      return `main ${before.toFixed(0)} -> ${watch.peakMiB.toFixed(0)} MiB, back in ${backMs.toFixed(0)} ms`;
    },
  },
  {
    rule: "BU3",
    name: `${HOLDERS} guests whose frames wait for running calls`,
    before: "main died after 18 s",
    limits: null,
    flags: SMALL_WITH_PAGES,
    attack: async ({ server: { port, pid } }) => {
      await using watch = await MemoryWatch.start(pid);
      const before = watch.nowMiB;
      const startedAt = performance.now();
      const guests = await Promise.all(Array.from({ length: HOLDERS }, () => guest(port)));
      const padding = "x".repeat(HELD_CHARS);
      for (const { socket } of guests) {
        for (let n = 0; n < 64; n++) {
          socket.send(call("Action", { n, path: "slow:slowAction", args: { ms: 8_000 } }));
        }
      }
      await pause(500);
      for (let round = 0; round < HELD_FRAMES; round++) {
        for (const { socket } of guests) {
          socket.send(call("Mutation", { n: 100 + round, path: "bystander:write", args: { n: 1, padding } }));
        }
        await pause(20);
      }
      await pause(500);
      const ended = guests.filter((one) => one.gone()).length;
      for (const { socket } of guests) socket.cut();
      assert(watch.peakMiB < before + 900, `main grew to ${watch.peakMiB.toFixed(0)} MiB`);
      const figure = `main ${before.toFixed(0)} -> ${watch.peakMiB.toFixed(0)} MiB, ${ended} ended`;
      return { figure, limits: besides(startedAt) };
    },
  },
  {
    rule: "BU4",
    name: `${FLOODERS} guests that send nothing but Pong`,
    before: "others waited 14 s",
    limits: { queryMs: SHORT_MS, mutationMs: SHORT_MS },
    attack: (world) => flooded(world, '{"type":"Pong"}'),
  },
  {
    rule: "BU4",
    name: `${FLOODERS} guests that call unknown functions`,
    before: "query 0.8 to 2.2 s, mutation 2.6 to 7.6 s",
    limits: { queryMs: SHORT_MS, mutationMs: SHORT_MS },
    attack: (world) => flooded(world, '{"type":"Mutation","requestId":1,"udfPath":"no:such","args":{}}'),
  },
];
