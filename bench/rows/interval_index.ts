/** Lookups of the intervals that contain a key, among few and many intervals. */
import { IntervalIndex } from "../../mod/sync/queries/invalidation.ts";
import type { Row } from "../table.ts";

const FEW = 1_000;
const MANY = 100_000;
const LOOKUPS = 2_000;
const ROUNDS = 7;

export function intervalIndexRows(): Promise<Row[]> {
  const [few, many] = [bestMs(FEW), bestMs(MANY)];
  return Promise.resolve([{
    name: `${LOOKUPS} lookups of a key among ${MANY} intervals`,
    measured: `${many.toFixed(2)} ms`,
    control: `${few.toFixed(2)} ms among ${FEW}`,
    ratio: many / few,
    target: { atMost: 20 },
    details: {},
  }]);
}

/** Returns the shortest time of several rounds. */
function bestMs(count: number): number {
  const index = new IntervalIndex<number>();
  for (let i = 0; i < count; i++) {
    const lo = i.toString().padStart(6, "0");
    index.add([lo, `${lo}~`], i);
  }
  const rounds = Array.from({ length: ROUNDS }, () => {
    const startedAt = performance.now();
    for (let i = 0; i < LOOKUPS; i++) index.stab((i * 7919 % count).toString().padStart(6, "0"), () => {});
    return performance.now() - startedAt;
  });
  return Math.min(...rounds);
}
