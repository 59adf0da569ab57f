/** Pauses of writes by kind of fault, as a table. */
import type { Writes } from "./clients.ts";

export class Figures {
  readonly #byKind = new Map<string, Writes[]>();

  add(kind: string, writes: Writes): void {
    this.#byKind.set(kind, [...this.#byKind.get(kind) ?? [], writes]);
  }

  /** Percentile of the pause of writes for a kind of fault; `null` if there were none. */
  pauseMs(kind: string, percent: number): number | null {
    const sorted = (this.#byKind.get(kind) ?? []).map(({ longestMs }) => longestMs).sort((a, b) => a - b);
    const ms = sorted[Math.ceil(sorted.length * percent / 100) - 1];
    return ms === undefined ? null : Math.round(ms);
  }

  toString(): string {
    const heads = [
      "fault",
      "count",
      "writes again p50 ms",
      "p99",
      "max",
      "slowest write ms",
      "tries refused",
      "broken off",
    ];
    const rows = [...this.#byKind].map(([kind, all]) => [
      kind,
      all.length,
      this.pauseMs(kind, 50),
      this.pauseMs(kind, 99),
      this.pauseMs(kind, 100),
      Math.round(Math.max(...all.map(({ slowestMs }) => slowestMs))),
      all.reduce((sum, { refused }) => sum + refused, 0),
      all.reduce((sum, { brokenOff }) => sum + brokenOff, 0),
    ]);
    const lines = [heads, ...rows].map((cells) => cells.map(String));
    const widths = heads.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
    const [head = "", ...body] = lines.map((line) =>
      `| ${line.map((text, column) => text.padEnd(widths[column] ?? 0)).join(" | ")} |`
    );
    return [head, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...body].join("\n");
  }
}
