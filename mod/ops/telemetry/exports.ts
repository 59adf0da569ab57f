/** Exports to the collector: their deadline, their results, and queues with a limit. */
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { Log } from "../../kit/log.ts";
import { telemetryLimits, type TelemetrySignal } from "../limits.ts";
import type { Exporter, ExporterOptions, ExportResult } from "./sdk/sdk.js";

export interface CollectorOptions {
  /** Base URL; `/v1/traces`, `/v1/metrics` and `/v1/logs` are appended. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Timeout of an export, including its retries. */
  readonly exportMs?: number;
  readonly log: Log;
}

/** Creates exporters, and logs the first failed export and the first success after which no signal fails. */
export class Collector implements Disposable {
  readonly #options: CollectorOptions;
  /** Result of the last export of each signal. A collector may accept only some of them. */
  readonly #results = new Map<TelemetrySignal, "ok" | "unreachable" | "failed">();
  /** Exports in progress of each signal. */
  readonly #inFlight = new Map<TelemetrySignal, number>();
  readonly #agents: HttpAgent[] = [];
  readonly #dropped: () => number;
  #closed = false;

  /** `dropped` returns the number of dropped items, for the log. */
  constructor(options: CollectorOptions, dropped: () => number) {
    this.#options = options;
    this.#dropped = dropped;
  }

  /** Returns the exporter of a signal. Each of its exports ends at the deadline. */
  exporter<Batch>(
    signal: TelemetrySignal,
    ExporterClass: new (options: ExporterOptions) => Exporter<Batch>,
  ): Exporter<Batch> {
    const { endpoint, headers, exportMs = telemetryLimits.exportMs } = this.#options;
    const agent = new (endpoint.startsWith("https:") ? HttpsAgent : HttpAgent)({ keepAlive: true });
    this.#agents.push(agent);
    const url = `${endpoint}/v1/${signal}`;
    const exporter = new ExporterClass({
      url,
      headers,
      timeoutMillis: exportMs,
      httpAgentOptions: () => agent,
    });
    return {
      export: (batch, done) => {
        if (this.#closed) return done({ code: 1, error: new Error("The export has ended") });
        this.#inFlight.set(signal, this.#exportsOf(signal) + 1);
        let isEnded = false;
        const end = (result: ExportResult) => {
          if (isEnded) return;
          isEnded = true;
          clearTimeout(timer);
          this.#inFlight.set(signal, this.#exportsOf(signal) - 1);
          this.ended(signal, result);
          done(result);
        };
        // The timeout of the package starts again with each byte of a response.
        const timer = setTimeout(() => {
          agent.destroy();
          const error = new Error(`The export did not end within ${exportMs} ms`);
          end({ code: 1, error: Object.assign(error, { code: "ETIMEDOUT" }) });
        }, exportMs);
        exporter.export(batch, end);
      },
      forceFlush: () => Promise.resolve(),
      shutdown: () => exporter.shutdown(),
    };
  }

  /** Whether a last export is worth waiting for. If there was none of this signal, the others decide. */
  mayWork(signal: TelemetrySignal): boolean {
    const result = this.#results.get(signal);
    return result === undefined ? !this.#isFailing : result === "ok";
  }

  ended(signal: TelemetrySignal, { code, error }: ExportResult): void {
    const wasFailing = this.#isFailing;
    const previous = this.#results.get(signal);
    this.#results.set(signal, code === 0 ? "ok" : isUnreachable(error) ? "unreachable" : "failed");
    // A signal that worked before does not show that the collector is back for the others.
    if (code === 0 && previous !== "ok") this.#forgetUnreachable();
    if (this.#isFailing === wasFailing) return;
    const { endpoint, log } = this.#options;
    if (!wasFailing) {
      const reason = error?.message ?? "";
      log("warn", "Cannot export telemetry", { code: "telemetry", endpoint, signal, error: reason });
    } else log("info", "Telemetry is exported again", { endpoint, dropped: this.#dropped() });
  }

  /** Removes results of signals that have exported nothing since, which would be failing forever. */
  #forgetUnreachable(): void {
    for (const [signal, result] of this.#results) {
      if (result === "unreachable" && this.#exportsOf(signal) === 0) this.#results.delete(signal);
    }
  }

  #exportsOf(signal: TelemetrySignal): number {
    return this.#inFlight.get(signal) ?? 0;
  }

  /** Closes the connections: exports in progress and later ones fail. */
  [Symbol.dispose](): void {
    this.#closed = true;
    for (const agent of this.#agents) agent.destroy();
  }

  get #isFailing(): boolean {
    return [...this.#results.values()].some((result) => result !== "ok");
  }
}

/** Whether the collector did not answer, such as with `ECONNREFUSED` or at the deadline. Statuses of HTTP are numbers. */
function isUnreachable(error: Error | undefined): boolean {
  return error !== undefined && "code" in error && typeof error.code === "string";
}

interface Processor<Item> {
  add(item: Item): void;
  shutdown(): Promise<void>;
}

/** Items that wait for their export, up to a number and a size. Further ones are dropped and counted. */
export class ExportQueue<Item> {
  readonly #processor: Processor<Item>;
  readonly #sizeOf: (item: Item) => number;
  readonly #sizeMax: number;
  #pending = 0;
  #size = 0;
  #dropped = 0;
  #closed = false;

  constructor({ exporter, start, sizeOf = () => 0, sizeMax = Infinity }: {
    readonly exporter: Exporter<readonly Item[]>;
    /** Starts the batches of the package. */
    readonly start: (options: {
      readonly exporter: Exporter<readonly Item[]>;
      readonly maxQueueSize: number;
      readonly maxExportBatchSize: number;
      readonly scheduledDelayMillis: number;
    }) => Processor<Item>;
    readonly sizeOf?: (item: Item) => number;
    readonly sizeMax?: number;
  }) {
    this.#sizeOf = sizeOf;
    this.#sizeMax = sizeMax;
    const { queuedMax, batchMax, flushMs } = telemetryLimits;
    const counting: Exporter<readonly Item[]> = {
      ...exporter,
      export: (batch, done) =>
        exporter.export(batch, (result) => {
          this.#pending -= batch.length;
          for (const item of batch) this.#size -= sizeOf(item);
          if (result.code !== 0) this.#dropped += batch.length;
          done(result);
        }),
    };
    this.#processor = start({
      exporter: counting,
      maxQueueSize: queuedMax,
      maxExportBatchSize: batchMax,
      scheduledDelayMillis: flushMs,
    });
  }

  /** Items dropped because the queue was full or their export failed. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Adds `count` items, which `make` returns, or drops all of them. */
  add(count: number, make: () => readonly Item[]): void {
    if (this.#closed || this.#pending + count > telemetryLimits.queuedMax || this.#size > this.#sizeMax) {
      this.#dropped += count;
      return;
    }
    this.#pending += count;
    for (const item of make()) {
      this.#size += this.#sizeOf(item);
      this.#processor.add(item);
    }
  }

  /** Exports the queued items. Never rejects: failed exports are logged by the collector. */
  close(): Promise<void> {
    this.#closed = true;
    return this.#processor.shutdown().catch(() => {});
  }
}
