/**
 * The rows of a writer whose history is kept elsewhere: each is sent to main before its group is committed, and the group
 * waits for what became of it. What main sends meanwhile waits, too.
 */
import type { JournalRow } from "../../../engine/mod.ts";
import type { KeepRow, RowRefusal, ToIsolate } from "../../wire/messages.ts";
import type { FrameSender, WireFrame } from "../../wire/segment_frames.ts";

/** The frames of main, in their order, but for answers that are waited for. */
export class Inbox {
  readonly #frames: AsyncGenerator<WireFrame<ToIsolate>, void>;
  #early: WireFrame<ToIsolate>[] = [];

  constructor(frames: AsyncGenerator<WireFrame<ToIsolate>, void>) {
    this.#frames = frames;
  }

  /** `null`: main has closed the socket. */
  async next(): Promise<WireFrame<ToIsolate> | null> {
    return this.#early.shift() ?? (await this.#frames.next()).value ?? null;
  }

  /** The answer to a row; `null`: main has closed the socket. */
  async answerTo(seq: number | null): Promise<Extract<ToIsolate, { type: "RowKept" }> | null> {
    for (;;) {
      const frame = (await this.#frames.next()).value ?? null;
      if (frame === null) return null;
      if (frame.message.type === "RowKept" && frame.message.seq === seq) return frame.message;
      this.#early.push(frame);
    }
  }
}

/** A row was not kept, so its group is not to be committed. */
export class RowRefusedError extends Error {
  override readonly name = "RowRefusedError";
  /** Whether it is known that nobody has it. */
  readonly known: boolean;

  constructor({ message, known }: RowRefusal) {
    super(message);
    this.known = known;
  }
}

/** Has a row kept; `null`: asks whether this server still leads. Throws a `RowRefusedError`. */
export type KeepRows = (row: JournalRow | null) => Promise<void>;

export function keepRows(
  { sender, inbox }: { readonly sender: FrameSender; readonly inbox: Inbox },
): KeepRows {
  return async (row) => {
    const { seq = null } = row ?? {};
    if (row === null) await sender.send({ type: "KeepRow", row } satisfies KeepRow);
    else {
      const { seq, tsBefore, ts, at, sum, body } = row;
      await sender.send({ type: "KeepRow", row: [seq, tsBefore, ts, at, sum] } satisfies KeepRow, [body]);
    }
    const answer = await inbox.answerTo(seq);
    if (answer === null) {
      throw new RowRefusedError({ message: "The server is stopping", known: row === null });
    }
    if (answer.refused !== null) throw new RowRefusedError(answer.refused);
  };
}
