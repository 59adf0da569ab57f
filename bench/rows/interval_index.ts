/** Finding the owners of an interval that contains a key, among few and many intervals. */
import { IntervalIndex } from "../../mod/sync/queries/invalidation.ts";
import type { Row } from "../table.ts";

const FEW = 1_000;
const MANY = 100_000;
const VISITS = 2_000;
const ROUNDS = 7;

export function intervalIndexRows(): Promise<Row[]> {
  const [few, many] = [leastMs(FEW), leastMs(MANY)];
  return Promise.resolve([{
    name: `finding the owner of a key ${VISITS} times among ${MANY} intervals`,
    measured: `${many.toFixed(2)} ms`,
    control: `${few.toFixed(2)} ms among ${FEW}`,
    ratio: many / few,
    target: { atMost: 20 },
    details: {},
  }]);
}

/** The shortest of several rounds: other programs only ever add time. */
function leastMs(count: number): number {
  const index = new IntervalIndex<number>();
  for (let i = 0; i < count; i++) {
    const lo = i.toString().padStart(6, "0");
    index.add([lo, `${lo}~`], i);
  }
  const rounds = Array.from({ length: ROUNDS }, () => {
    const startedAt = performance.now();
    for (let i = 0; i < VISITS; i++) index.stab((i * 7919 % count).toString().padStart(6, "0"), () => {});
    return performance.now() - startedAt;
  });
  return Math.min(...rounds);
}
