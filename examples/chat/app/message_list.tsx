/** The messages of a channel: live, with earlier ones on request; keeps the reader's place. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { usePaginatedQuery } from "syncline/react";
import { api, type Message, type Person } from "./api.ts";
import { MessageItem } from "./message_item.tsx";
import { MessageKeys } from "./message_keys.ts";

/** The reader follows new messages when this close to the end, in pixels. */
const FOLLOW_PX = 80;
/** Messages shown at first, and added at each request. */
const PAGE = 50;

interface MessageListProps {
  readonly channel: string;
  readonly me: Person;
  /** Grows with each message sent here: then the list goes to its end. */
  readonly sent: number;
}

export function MessageList({ channel, me, sent }: MessageListProps) {
  const { results, status, isLoading, loadMore } = usePaginatedQuery(
    api.messages.page,
    { channel },
    { initialNumItems: PAGE },
  );
  const messages = useMemo((): Message[] => results.toReversed(), [results]);
  const [memory] = useState(() => new MessageKeys());
  const keys = memory.of(messages);
  const isThere = status !== "LoadingFirstPage";
  const { scroller, hasNewer, follow } = usePlace({ messages, sent });
  // Messages of the first page are not new.
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => setIsOpen(isThere), [isThere]);

  return (
    <div className="messages-frame">
      <div ref={scroller} className="scroller" tabIndex={0} aria-label="Messages" role="group">
        {isThere && messages.length === 0 && (
          <p className="empty">
            <strong>It is quiet in here.</strong>
            Open this page in a second window and say hello: what you type in one appears in the other.
          </p>
        )}
        {(status === "CanLoadMore" || status === "LoadingMore") && (
          <button
            type="button"
            className="quiet earlier"
            disabled={isLoading}
            onClick={() => loadMore()}
          >
            {isLoading ? "Loading…" : "Show earlier messages"}
          </button>
        )}
        <ol
          className={isOpen ? "messages open" : "messages"}
          role="log"
          aria-live="polite"
          aria-relevant="additions"
        >
          {messages.map((message, i) => (
            <MessageItem
              key={keys.get(message._id)}
              message={message}
              previous={messages[i - 1] ?? null}
              isMine={me.author === undefined
                ? message.author === undefined && message.name === me.name
                : message.author === me.author}
            />
          ))}
        </ol>
      </div>
      {hasNewer && <button type="button" className="newer" onClick={follow}>New messages ↓</button>}
    </div>
  );
}

/** Where the reader is: stays at the end with the newest message, or where they read while others come and go. */
function usePlace({ messages, sent }: { readonly messages: readonly Message[]; readonly sent: number }) {
  const scroller = useRef<HTMLDivElement>(null);
  const isFollowing = useRef(true);
  const before = useRef({ first: "", last: "", height: 0 });
  const [hasNewer, setHasNewer] = useState(false);

  const follow = () => {
    isFollowing.current = true;
    setHasNewer(false);
    if (scroller.current !== null) scroller.current.scrollTop = scroller.current.scrollHeight;
  };
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const onScroll = () => {
      isFollowing.current = element.scrollHeight - element.scrollTop - element.clientHeight < FOLLOW_PX;
      if (isFollowing.current) setHasNewer(false);
    };
    const resized = new ResizeObserver(() => {
      if (isFollowing.current) element.scrollTop = element.scrollHeight;
    });
    element.addEventListener("scroll", onScroll, { passive: true });
    resized.observe(element);
    return () => {
      element.removeEventListener("scroll", onScroll);
      resized.disconnect();
    };
  }, []);
  useLayoutEffect(() => {
    if (sent > 0) follow();
  }, [sent]);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const { first, last, height } = before.current;
    const now = {
      first: messages[0]?._id ?? "",
      last: messages.at(-1)?._id ?? "",
      height: element.scrollHeight,
    };
    before.current = now;
    if (isFollowing.current) element.scrollTop = element.scrollHeight;
    // Earlier messages came in above: what was read stays where it was.
    else if (now.first !== first && now.last === last) element.scrollTop += now.height - height;
    else if (now.last !== last) setHasNewer(true);
  }, [messages]);
  return { scroller, hasNewer, follow };
}
