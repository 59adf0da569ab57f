/** A writer with fake isolates, and a record of its reports. */
import { functionLimits } from "../../../../mod/limits.ts";
import { frameText } from "../../../../mod/functions/wire/segment_frames.ts";
import { Writer } from "../../../../mod/functions/host/writer/writer.ts";
import type { FunctionCall, MutationAnswer, MutationCall } from "../../../../mod/functions/host_port.ts";
import { anonymous } from "../../../../mod/functions/identity.ts";
import type { Group } from "../../../../mod/functions/wire/messages.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { FakeIsolate, FakeStarter } from "./fake_isolate.ts";

export function call(udfPath: string, args: Record<string, unknown> = {}): FunctionCall {
  return { udfPath, args, identity: anonymous, origin: "client" };
}

export class WriterWorld {
  readonly clock = new FakeClock();
  readonly starter = new FakeStarter();
  /** Reports in order: `commit <ts>`, `gap <ts>`, `answer <path>`. */
  readonly reported: string[] = [];
  readonly warnings: string[] = [];
  /** Waits that may busy-wait, as they start and end. */
  readonly waits: ("wait" | "over")[] = [];
  readonly writer = new Writer({
    starter: this.starter,
    clock: this.clock,
    log: (_level, message) => this.warnings.push(message),
    batchPrefix: "b",
    timeoutMs: functionLimits.mutationTimeoutMs,
    spinner: { waitStarted: () => this.waits.push("wait"), waitEnded: () => this.waits.push("over") },
    onGroup: (entries) => this.reported.push(...entries.map(({ ts }) => `commit ${ts}`)),
    onGap: (ts) => this.reported.push(`gap ${ts}`),
  });

  get isolate(): FakeIsolate {
    return this.starter.newest("writer");
  }

  /** Paths of the calls of the newest batch. */
  get batch(): string[] {
    return this.isolate.last("Batch").calls.map(({ udfPath }) => udfPath);
  }

  get batches(): number {
    return this.isolate.sent.length;
  }

  mutate(udfPath: string, options: Partial<MutationCall> = {}): Promise<MutationAnswer> {
    const answer = this.writer.mutate({ ...call(udfPath), ...options });
    answer.then(() => this.reported.push(`answer ${udfPath}`));
    return answer;
  }

  /** A group of a batch, the newest unless it is counted from 0, in which every call committed something. */
  group(
    from: number,
    answers: number,
    ts: number,
    counted = -1,
  ): { readonly message: Group; readonly segments: string[] } {
    const sent = this.isolate.sent.filter((message) => message.type === "Batch").at(counted);
    const { batch, calls } = sent ?? this.isolate.last("Batch");
    const segments = calls.slice(from, from + answers).map(({ udfPath }) => JSON.stringify(`did ${udfPath}`));
    const each = segments.map((_, i) => ts - answers + 1 + i);
    const message: Group = {
      type: "Group",
      batch,
      from,
      answers: each.map((ts, value) => [ts, value]),
      tables: [],
      entries: each.map((ts) => [ts, 0, []]),
      ts,
    };
    return { message, segments };
  }

  /** The writer reports that the newest batch is about to end. */
  committing(): void {
    this.isolate.sends({ type: "Committing", batch: this.isolate.last("Batch").batch });
  }

  /** The writer commits and reports it. */
  commits(from: number, answers: number, ts: number, counted = -1): void {
    const { message, segments } = this.group(from, answers, ts, counted);
    this.starter.ts = ts;
    this.isolate.sends(message, segments);
  }

  /** The writer commits and reports more than usual. */
  sends(from: number, answers: number, ts: number, more: Pick<Group, "uses" | "ends">): void {
    const { message, segments } = this.group(from, answers, ts);
    this.starter.ts = ts;
    this.isolate.sends({ ...message, ...more }, segments);
  }

  /** The writer commits and is lost before it reports: the next one finds the group. */
  commitsUnreported(from: number, answers: number, ts: number): void {
    const { message, segments } = this.group(from, answers, ts);
    this.starter.ts = ts;
    this.starter.lastGroup = frameText(message, segments);
  }
}

/** The result of a successful mutation, or what went wrong. */
export function resultOf({ outcome }: Pick<MutationAnswer, "outcome">): unknown {
  if (outcome.ok) return JSON.parse(outcome.value);
  const { kind, data, message, retryable } = outcome.error;
  return `${retryable ? data?.code ?? kind : kind}: ${message}`;
}
