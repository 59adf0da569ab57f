/** Log lines of runs, as the main process receives them: `[LEVEL] text`. */
import { LRUCache } from "lru-cache";
import type { LogLevel } from "../kit/log.ts";
import { functionLimits } from "../limits.ts";
import type { FunctionCall } from "./host_port.ts";

/** Characters of remembered lines. */
const CHARS_MAX = 4_194_304;

export interface RunLogLine {
  readonly level: LogLevel;
  readonly text: string;
}

/** Lines of the calls that a run has made so far. */
interface NestedLines {
  /** Each line with its number of occurrences. */
  readonly counts: Map<string, number>;
  readonly size: number;
  readonly chars: number;
}

/** The lines of an action include those of its nested calls, which have ended and were reported before. */
export class OwnLogLines {
  /** By the span of the calling run. */
  readonly #nested: LRUCache<string, NestedLines>;

  /** `callersMax` is the number of runs whose nested lines are remembered. */
  constructor(callersMax: number) {
    this.#nested = new LRUCache({
      max: callersMax,
      maxSize: CHARS_MAX,
      sizeCalculation: ({ chars }) => chars + 1,
    });
  }

  /** Returns the lines of a run without those of its nested calls. */
  of(
    { trace, origin }: Partial<Pick<FunctionCall, "trace" | "origin">>,
    lines: readonly string[],
  ): readonly RunLogLine[] {
    if (trace === undefined) return lines.map(parsed);
    // Other spans that cause runs are requests, which have no lines.
    if (origin === "server" && trace.parentId !== undefined) this.#remember(trace.parentId, lines);
    const counts = this.#nested.get(trace.spanId)?.counts;
    if (counts === undefined) return lines.map(parsed);
    this.#nested.delete(trace.spanId);
    return lines.filter((line) => {
      const count = counts.get(line) ?? 0;
      if (count > 0) counts.set(line, count - 1);
      return count === 0;
    }).map(parsed);
  }

  #remember(caller: string, lines: readonly string[]): void {
    const { counts, size, chars } = this.#nested.get(caller) ?? { counts: new Map(), size: 0, chars: 0 };
    // The caller has no further ones.
    const added = lines.slice(0, functionLimits.logLinesMax - size);
    if (added.length === 0) return;
    for (const line of added) counts.set(line, (counts.get(line) ?? 0) + 1);
    // A new object, whose size is calculated again.
    this.#nested.set(caller, {
      counts,
      size: size + added.length,
      chars: added.reduce((sum, line) => sum + line.length, chars),
    });
  }
}

function parsed(line: string): RunLogLine {
  const [, level = "INFO", text = line] = /^\[(DEBUG|INFO|WARN|ERROR)\] ([^]*)$/.exec(line) ?? [];
  return { level: level.toLowerCase() as LogLevel, text };
}
