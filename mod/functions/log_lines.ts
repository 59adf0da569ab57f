/** Log lines of runs, as the main process receives them: `[LEVEL] text`. */
import { LRUCache } from "lru-cache";
import type { LogLevel } from "../kit/log.ts";

/** Characters of remembered lines. */
const CHARS_MAX = 4_194_304;

export interface RunLogLine {
  readonly level: LogLevel;
  readonly text: string;
}

/** The lines of an action include those of its nested calls, which have ended and were reported before. */
export class NewLogLines {
  readonly #ofRequests: LRUCache<number, string[]>;

  /** `requestsMax` is the number of requests whose lines are remembered. */
  constructor(requestsMax: number) {
    this.#ofRequests = new LRUCache({
      max: requestsMax,
      maxSize: CHARS_MAX,
      sizeCalculation: (lines) => lines.reduce((sum, line) => sum + line.length, 1),
    });
  }

  /** Returns the lines of a run without those of runs of the same request that were passed before. */
  of(request: number, lines: readonly string[]): readonly RunLogLine[] {
    if (lines.length === 0) return [];
    const known = this.#ofRequests.get(request) ?? [];
    const left = [...known];
    const fresh = lines.filter((line) => {
      const at = left.indexOf(line);
      if (at >= 0) left.splice(at, 1);
      return at < 0;
    });
    this.#ofRequests.set(request, [...known, ...fresh]);
    return fresh.map(parsed);
  }
}

function parsed(line: string): RunLogLine {
  const [, level = "INFO", text = line] = /^\[(DEBUG|INFO|WARN|ERROR)\] ([^]*)$/.exec(line) ?? [];
  return { level: level.toLowerCase() as LogLevel, text };
}
