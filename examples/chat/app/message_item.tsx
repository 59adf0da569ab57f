/** One message. */
import { memo } from "react";
import type { Message } from "./api.ts";
import { Avatar } from "./avatar.tsx";
import { LinkedText } from "./linked_text.tsx";
import { StreamedText } from "./streamed_text.tsx";

/** Messages of one person within this time appear under one name, in milliseconds. */
const GROUP_MS = 5 * 60 * 1000;

const timeFormat = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const dateFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "short" });

interface MessageItemProps {
  readonly message: Message;
  readonly previous: Message | null;
  readonly isMine: boolean;
}

export const MessageItem = memo(function MessageItem({ message, previous, isMine }: MessageItemProps) {
  const { name, author, body, stream, pending, _creationTime } = message;
  const isContinued = previous !== null && previous.name === name && previous.author === author &&
    _creationTime - previous._creationTime < GROUP_MS;
  const sentAt = new Date(_creationTime);
  const classes = ["message", isContinued && "continued", pending && "pending", isMine && "mine"];
  return (
    <li className={classes.filter(Boolean).join(" ")}>
      <Avatar name={name} />
      <p className="message-head">
        <strong className="name">{name}</strong>
        {author !== undefined && (
          <span className="member" title="Signed in" role="img" aria-label="signed in">✓</span>
        )}{" "}
        <time className="time" dateTime={sentAt.toISOString()} title={dateFormat.format(sentAt)}>
          {timeFormat.format(sentAt)}
        </time>{" "}
        <span className="sending">sending…</span>
      </p>
      <p className="message-body">
        {stream === undefined ? <LinkedText>{body}</LinkedText> : <StreamedText stream={stream} />}
      </p>
    </li>
  );
});
