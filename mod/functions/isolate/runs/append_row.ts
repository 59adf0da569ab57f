/** Sends a leader's rows to main, which appends them before the commit, and waits. Other messages are queued. */
import type { JournalRow } from "../../../engine/mod.ts";
import type { AppendRefusal, AppendRow, ToIsolate } from "../../wire/messages.ts";
import type { FrameSender, WireFrame } from "../../wire/segment_frames.ts";

/** Messages of main in order. Answers to rows are returned separately. */
export class Inbox {
  readonly #frames: AsyncGenerator<WireFrame<ToIsolate>, void>;
  #early: WireFrame<ToIsolate>[] = [];

  constructor(frames: AsyncGenerator<WireFrame<ToIsolate>, void>) {
    this.#frames = frames;
  }

  /** Returns the next message, `null` if main closed the socket. */
  async next(): Promise<WireFrame<ToIsolate> | null> {
    return this.#early.shift() ?? (await this.#frames.next()).value ?? null;
  }

  /** Returns the answer to a row, `null` if main closed the socket. */
  async answerTo(seq: number | null): Promise<Extract<ToIsolate, { type: "RowAppended" }> | null> {
    for (;;) {
      const frame = (await this.#frames.next()).value ?? null;
      if (frame === null) return null;
      if (frame.message.type === "RowAppended" && frame.message.seq === seq) return frame.message;
      this.#early.push(frame);
    }
  }
}

/** Thrown if a row was not appended, so its group must not be committed. */
export class RowRefusedError extends Error {
  override readonly name = "RowRefusedError";
  /** Whether the row is certain not to exist. */
  readonly known: boolean;

  constructor({ message, known }: AppendRefusal) {
    super(message);
    this.known = known;
  }
}

/** Appends a row to the log. With `null`, checks whether this server is still the leader. @throws RowRefusedError */
export type Append = (row: JournalRow | null) => Promise<void>;

export function rowAppender(
  { sender, inbox }: { readonly sender: FrameSender; readonly inbox: Inbox },
): Append {
  return async (row) => {
    const { seq = null } = row ?? {};
    if (row === null) await sender.send({ type: "AppendRow", row } satisfies AppendRow);
    else {
      const { seq, tsBefore, ts, at, sum, body } = row;
      await sender.send({ type: "AppendRow", row: [seq, tsBefore, ts, at, sum] } satisfies AppendRow, [body]);
    }
    const answer = await inbox.answerTo(seq);
    if (answer === null) {
      throw new RowRefusedError({ message: "The server is stopping", known: row === null });
    }
    if (answer.refused !== null) throw new RowRefusedError(answer.refused);
  };
}
