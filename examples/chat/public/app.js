// app/main.tsx
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { SynclineClient } from "syncline/client";
import { SynclineProvider } from "syncline/react";

// app/chat.tsx
import { useRef as useRef4, useState as useState9 } from "react";
import { Unauthenticated as Unauthenticated2, useMutation, useQuery as useQuery2 } from "syncline/react";

// app/api.ts
import { createApi } from "syncline/client";
var { api } = createApi();

// app/composer.tsx
import { useRef, useState } from "react";
import { jsx, jsxs } from "react/jsx-runtime";
function Composer({ channel, problem, onInput, onSend }) {
  const [text, setText] = useState("");
  const box = useRef(null);
  const submit = async () => {
    const body = text.trim();
    if (body === "") return;
    setText("");
    box.current?.focus();
    if (!await onSend(body)) setText((now) => now === "" ? body : now);
  };
  const onKeyDown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    void submit();
  };
  return /* @__PURE__ */ jsxs(
    "form",
    {
      className: "composer",
      onSubmit: (event) => {
        event.preventDefault();
        void submit();
      },
      children: [
        problem !== "" && /* @__PURE__ */ jsx("p", { className: "problem", role: "alert", children: problem }),
        /* @__PURE__ */ jsx(
          "textarea",
          {
            ref: box,
            "aria-label": "Message",
            rows: 1,
            maxLength: 2e3,
            placeholder: `Write to #${channel}`,
            enterKeyHint: "send",
            autoComplete: "off",
            autoFocus: true,
            value: text,
            onKeyDown,
            onChange: (event) => {
              setText(event.target.value);
              onInput(event.target.value);
            }
          }
        ),
        /* @__PURE__ */ jsxs("button", { type: "submit", className: "send", children: [
          /* @__PURE__ */ jsx("span", { className: "visually-hidden", children: "Send" }),
          /* @__PURE__ */ jsx("svg", { viewBox: "0 0 24 24", width: "20", height: "20", "aria-hidden": "true", children: /* @__PURE__ */ jsx(
            "path",
            {
              d: "M4.5 12h9M4 4.5l16 7.5-16 7.5 2.2-7.5z",
              fill: "none",
              stroke: "currentColor",
              strokeWidth: "1.8",
              strokeLinejoin: "round",
              strokeLinecap: "round"
            }
          ) })
        ] })
      ]
    }
  );
}

// app/connection.tsx
import { useEffect, useState as useState2 } from "react";
import { useConnectionState, useSyncline } from "syncline/react";
import { jsx as jsx2, jsxs as jsxs2 } from "react/jsx-runtime";
var SLOW_MS = 2e3;
function Connection() {
  const client2 = useSyncline();
  const state = useConnectionState();
  const isSlow = useIsSlow(state.inflightMutations > 0);
  const { label, phase } = describe(state, isSlow);
  return /* @__PURE__ */ jsxs2("div", { className: "connection", role: "status", children: [
    /* @__PURE__ */ jsx2("span", { className: "connection-text", "data-phase": phase, children: label }),
    state.phase === "waiting" && state.retries >= 2 && /* @__PURE__ */ jsx2("button", { type: "button", onClick: () => client2.reconnectNow(), children: "Try now" })
  ] });
}
function useIsSlow(isBusy) {
  const client2 = useSyncline();
  const [isSlow, setIsSlow] = useState2(false);
  useEffect(() => {
    if (!isBusy) return setIsSlow(false);
    const look = () => setIsSlow((client2.connectionState().oldestCallAgeMs ?? 0) > SLOW_MS);
    const timer = setInterval(look, 1e3);
    return () => clearInterval(timer);
  }, [client2, isBusy]);
  return isSlow;
}
function describe(state, isSlow) {
  if (state.isConnected) {
    return isSlow ? { label: "Sending…", phase: "busy" } : { label: "Live", phase: "live" };
  }
  if (!state.hasEverConnected && state.retries === 0) return { label: "Connecting…", phase: "connecting" };
  const waiting = state.inflightMutations;
  const unsent = waiting === 0 ? "" : waiting === 1 ? " · 1 message waits" : ` · ${waiting} messages wait`;
  return { label: `Offline, reconnecting${unsent}`, phase: "offline" };
}

// app/me.tsx
import { ownAccount } from "syncline/client";
import { Authenticated, Unauthenticated, useAuth, useQuery } from "syncline/react";

// app/avatar.tsx
import { jsx as jsx3 } from "react/jsx-runtime";
function Avatar({ name }) {
  let hue = 0;
  for (const letter of name) hue = (hue * 31 + (letter.codePointAt(0) ?? 0)) % 360;
  return /* @__PURE__ */ jsx3("span", { className: "avatar", "aria-hidden": "true", style: { "--hue": hue }, children: [...name][0]?.toUpperCase() ?? "?" });
}

// app/me.tsx
import { jsx as jsx4, jsxs as jsxs3 } from "react/jsx-runtime";
function Me({ person, guestName, onGuestName, onSignIn }) {
  const { isAuthenticated, isLoading } = useAuth();
  return /* @__PURE__ */ jsxs3("div", { className: "me", "data-loading": isLoading || void 0, children: [
    /* @__PURE__ */ jsx4(Avatar, { name: person.name }),
    isAuthenticated ? /* @__PURE__ */ jsxs3("p", { children: [
      /* @__PURE__ */ jsx4("span", { children: "Signed in" }),
      /* @__PURE__ */ jsx4("strong", { children: person.name }),
      /* @__PURE__ */ jsx4(Address, {})
    ] }) : /* @__PURE__ */ jsxs3("label", { children: [
      /* @__PURE__ */ jsx4("span", { children: "Your name" }),
      /* @__PURE__ */ jsx4(
        "input",
        {
          maxLength: 40,
          autoComplete: "nickname",
          required: true,
          value: guestName,
          onChange: (event) => onGuestName(event.target.value)
        }
      )
    ] }),
    /* @__PURE__ */ jsx4(Authenticated, { children: /* @__PURE__ */ jsx4(SignOut, {}) }),
    /* @__PURE__ */ jsx4(Unauthenticated, { children: /* @__PURE__ */ jsx4("button", { type: "button", className: "quiet", onClick: onSignIn, children: "Sign in" }) })
  ] });
}
function Address() {
  const email = useQuery(ownAccount)?.email;
  return email ? /* @__PURE__ */ jsx4("span", { className: "address", title: email, children: email }) : null;
}
function SignOut() {
  const { auth } = useAuth();
  return (
    // When the server cannot be reached the session ends there later; here it has ended.
    /* @__PURE__ */ jsx4("button", { type: "button", className: "quiet", onClick: () => void auth.signOut().catch(() => {
    }), children: "Sign out" })
  );
}

// app/message_list.tsx
import { useEffect as useEffect2, useLayoutEffect, useMemo, useRef as useRef2, useState as useState3 } from "react";
import { usePaginatedQuery } from "syncline/react";

// app/message_item.tsx
import { memo } from "react";

// app/linked_text.tsx
import { Fragment } from "react";
import { jsx as jsx5 } from "react/jsx-runtime";
var ADDRESS = /\bhttps?:\/\/[^\s<>"]+/gi;
var CLOSING = { ")": "(", "]": "[", "}": "{" };
function LinkedText({ children }) {
  return pieces(children).map(
    ({ text, href }, index) => href === null ? /* @__PURE__ */ jsx5(Fragment, { children: text }, index) : /* @__PURE__ */ jsx5("a", { href, target: "_blank", rel: "noopener noreferrer nofollow ugc", children: text }, index)
  );
}
function pieces(text) {
  const found = [];
  let end = 0;
  for (const match of text.matchAll(ADDRESS)) {
    const address = withoutPunctuation(match[0]);
    const href = hrefOf(address);
    if (href === null) continue;
    if (match.index > end) found.push({ text: text.slice(end, match.index), href: null });
    found.push({ text: address, href });
    end = match.index + address.length;
  }
  return end < text.length || found.length === 0 ? [...found, { text: text.slice(end), href: null }] : found;
}
function withoutPunctuation(address) {
  for (let text = address; ; ) {
    const last = text.at(-1) ?? "";
    const opening = CLOSING[last];
    const isOpen = opening !== void 0 && text.split(opening).length >= text.split(last).length;
    if (isOpen || opening === void 0 && !/[.,;:!?'*_~]/.test(last)) return text;
    text = text.slice(0, -1);
  }
}
function hrefOf(address) {
  const url = URL.parse(address);
  return url !== null && /^https?:$/.test(url.protocol) && url.hostname !== "" ? url.href : null;
}

// app/streamed_text.tsx
import { useStreamText } from "syncline/react/streams";
import { jsx as jsx6, jsxs as jsxs4 } from "react/jsx-runtime";
function StreamedText({ stream }) {
  const { text, isDone, error } = useStreamText(stream);
  if (error !== null) {
    return /* @__PURE__ */ jsxs4("span", { children: [
      text,
      " ",
      /* @__PURE__ */ jsx6("em", { children: "(The answer is incomplete.)" })
    ] });
  }
  return /* @__PURE__ */ jsx6("span", { "aria-busy": !isDone, children: isDone ? text : `${text}…` });
}

// app/message_item.tsx
import { jsx as jsx7, jsxs as jsxs5 } from "react/jsx-runtime";
var GROUP_MS = 5 * 60 * 1e3;
var timeFormat = new Intl.DateTimeFormat(void 0, { hour: "numeric", minute: "2-digit" });
var dateFormat = new Intl.DateTimeFormat(void 0, { dateStyle: "full", timeStyle: "short" });
var MessageItem = memo(function MessageItem2({ message, previous, isMine }) {
  const { name, author, body, stream, pending, _creationTime } = message;
  const isContinued = previous !== null && previous.name === name && previous.author === author && _creationTime - previous._creationTime < GROUP_MS;
  const sentAt = new Date(_creationTime);
  const classes = ["message", isContinued && "continued", pending && "pending", isMine && "mine"];
  return /* @__PURE__ */ jsxs5("li", { className: classes.filter(Boolean).join(" "), children: [
    /* @__PURE__ */ jsx7(Avatar, { name }),
    /* @__PURE__ */ jsxs5("p", { className: "message-head", children: [
      /* @__PURE__ */ jsx7("strong", { className: "name", children: name }),
      author !== void 0 && /* @__PURE__ */ jsx7("span", { className: "member", title: "Signed in", role: "img", "aria-label": "signed in", children: "✓" }),
      " ",
      /* @__PURE__ */ jsx7("time", { className: "time", dateTime: sentAt.toISOString(), title: dateFormat.format(sentAt), children: timeFormat.format(sentAt) }),
      " ",
      /* @__PURE__ */ jsx7("span", { className: "sending", children: "sending…" })
    ] }),
    /* @__PURE__ */ jsx7("p", { className: "message-body", children: stream === void 0 ? /* @__PURE__ */ jsx7(LinkedText, { children: body }) : /* @__PURE__ */ jsx7(StreamedText, { stream }) })
  ] });
});

// app/message_keys.ts
var MessageKeys = class {
  #messages = [];
  /** Keys by message id. */
  #keys = /* @__PURE__ */ new Map();
  /** The key of each message. Messages that are new take the keys of the pending ones they are the real form of. */
  of(messages) {
    if (messages === this.#messages) return this.#keys;
    const present = new Set(messages.map(({ _id }) => _id));
    const gone = this.#messages.filter(({ _id, pending }) => pending && !present.has(_id));
    const keys = /* @__PURE__ */ new Map();
    for (const message of messages) {
      let key = this.#keys.get(message._id);
      if (key === void 0) {
        const at = gone.findIndex(({ name, body }) => name === message.name && body === message.body);
        const [pending] = at < 0 ? [] : gone.splice(at, 1);
        key = (pending && this.#keys.get(pending._id)) ?? message._id;
      }
      keys.set(message._id, key);
    }
    this.#messages = messages;
    this.#keys = keys;
    return keys;
  }
};

// app/message_list.tsx
import { jsx as jsx8, jsxs as jsxs6 } from "react/jsx-runtime";
var FOLLOW_PX = 80;
var PAGE = 50;
function MessageList({ channel, me, sent }) {
  const { results, status, isLoading, loadMore } = usePaginatedQuery(
    api.messages.page,
    { channel },
    { initialNumItems: PAGE }
  );
  const messages = useMemo(() => results.toReversed(), [results]);
  const [memory] = useState3(() => new MessageKeys());
  const keys = memory.of(messages);
  const isThere = status !== "LoadingFirstPage";
  const { scroller, hasNewer, follow } = usePlace({ messages, sent });
  const [isOpen, setIsOpen] = useState3(false);
  useEffect2(() => setIsOpen(isThere), [isThere]);
  return /* @__PURE__ */ jsxs6("div", { className: "messages-frame", children: [
    /* @__PURE__ */ jsxs6("div", { ref: scroller, className: "scroller", tabIndex: 0, "aria-label": "Messages", role: "group", children: [
      isThere && messages.length === 0 && /* @__PURE__ */ jsxs6("p", { className: "empty", children: [
        /* @__PURE__ */ jsx8("strong", { children: "It is quiet in here." }),
        "Open this page in a second window and say hello: what you type in one appears in the other."
      ] }),
      (status === "CanLoadMore" || status === "LoadingMore") && /* @__PURE__ */ jsx8(
        "button",
        {
          type: "button",
          className: "quiet earlier",
          disabled: isLoading,
          onClick: () => loadMore(),
          children: isLoading ? "Loading…" : "Show earlier messages"
        }
      ),
      /* @__PURE__ */ jsx8(
        "ol",
        {
          className: isOpen ? "messages open" : "messages",
          role: "log",
          "aria-live": "polite",
          "aria-relevant": "additions",
          children: messages.map((message, i) => /* @__PURE__ */ jsx8(
            MessageItem,
            {
              message,
              previous: messages[i - 1] ?? null,
              isMine: me.author === void 0 ? message.author === void 0 && message.name === me.name : message.author === me.author
            },
            keys.get(message._id)
          ))
        }
      )
    ] }),
    hasNewer && /* @__PURE__ */ jsx8("button", { type: "button", className: "newer", onClick: follow, children: "New messages ↓" })
  ] });
}
function usePlace({ messages, sent }) {
  const scroller = useRef2(null);
  const isFollowing = useRef2(true);
  const before = useRef2({ first: "", last: "", height: 0 });
  const [hasNewer, setHasNewer] = useState3(false);
  const follow = () => {
    isFollowing.current = true;
    setHasNewer(false);
    if (scroller.current !== null) scroller.current.scrollTop = scroller.current.scrollHeight;
  };
  useEffect2(() => {
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
      height: element.scrollHeight
    };
    before.current = now;
    if (isFollowing.current) element.scrollTop = element.scrollHeight;
    else if (now.first !== first && now.last === last) element.scrollTop += now.height - height;
    else if (now.last !== last) setHasNewer(true);
  }, [messages]);
  return { scroller, hasNewer, follow };
}

// app/room.tsx
import { useCallback, useEffect as useEffect3, useRef as useRef3, useState as useState4 } from "react";
import { usePresence } from "syncline/react/presence";
import { Fragment as Fragment2, jsx as jsx9, jsxs as jsxs7 } from "react/jsx-runtime";
var PAUSE_MS = 5e3;
function useRoom(channel, guestName) {
  const [isTyping, setIsTyping] = useState4(false);
  const pause = useRef3(void 0);
  const name = guestName.trim() || "Guest";
  const { others, members } = usePresence(`channel ${channel}`, { name, isTyping });
  const stop = useCallback(() => {
    clearTimeout(pause.current);
    setIsTyping(false);
  }, []);
  const touch = useCallback((text) => {
    if (text.trim() === "") return stop();
    clearTimeout(pause.current);
    pause.current = setTimeout(stop, PAUSE_MS);
    setIsTyping(true);
  }, [stop]);
  useEffect3(() => stop, [channel, stop]);
  const nameOf = ({ info, state }) => info?.name ?? state.name;
  return {
    touch,
    stop,
    /** Names of the others who type. */
    typing: [...new Set(others.filter(({ state }) => state.isTyping).map(nameOf))],
    /** Names of everyone who has the channel open. */
    present: [...new Set(members.map(nameOf))]
  };
}
function TypingLine({ names }) {
  return /* @__PURE__ */ jsx9("p", { className: "typing", "aria-live": "polite", children: names.length > 0 && /* @__PURE__ */ jsxs7(Fragment2, { children: [
    /* @__PURE__ */ jsxs7("span", { className: "dots", "aria-hidden": "true", children: [
      /* @__PURE__ */ jsx9("i", {}),
      /* @__PURE__ */ jsx9("i", {}),
      /* @__PURE__ */ jsx9("i", {})
    ] }),
    sentence(names)
  ] }) });
}
function sentence(names) {
  if (names.length > 3) return "Several people are writing…";
  const last = names.at(-1);
  return names.length === 1 ? `${last} is writing…` : `${names.slice(0, -1).join(", ")} and ${last} are writing…`;
}

// app/send.ts
import { useCallback as useCallback2, useState as useState5 } from "react";
import { useSyncline as useSyncline2 } from "syncline/react";
var localMessages = 0;
function useSend({ channel, guestName, person }) {
  const client2 = useSyncline2();
  const [sent, setSent] = useState5(0);
  const send = useCallback2(async (body) => {
    setSent((count) => count + 1);
    const local = {
      _id: `local-${++localMessages}`,
      _creationTime: Date.now(),
      channel,
      body,
      ...person,
      pending: true
    };
    await client2.mutation(api.messages.send, { channel, name: guestName, body }, {
      optimisticUpdate: (store) => showFirst(store, local)
    });
  }, [client2, channel, guestName, person.name, person.author]);
  return { send, sent };
}
function showFirst(store, message) {
  for (const { args, value } of store.getAllQueries(api.messages.page)) {
    if (args.channel !== message.channel || args.paginationOpts.cursor !== null) continue;
    store.setQuery(api.messages.page, args, { ...value, page: [message, ...value.page] });
  }
}

// app/sign_in.tsx
import { useId, useState as useState6 } from "react";
import { useAuth as useAuth2 } from "syncline/react";
import { jsx as jsx10, jsxs as jsxs8 } from "react/jsx-runtime";
function SignIn({ dialog, guestName }) {
  const { auth } = useAuth2();
  const [isNew, setIsNew] = useState6(false);
  const [isBusy, setIsBusy] = useState6(false);
  const [notice, setNotice] = useState6(null);
  const title = useId();
  const submit = async (fields) => {
    const [email, password] = ["email", "password"].map((name) => String(fields.get(name)));
    if (email === void 0 || password === void 0) return;
    setIsBusy(true);
    setNotice(null);
    try {
      if (!isNew) await auth.signIn({ email, password });
      else if ((await auth.signUp({ email, password, name: guestName.trim() })).verificationRequired) {
        setNotice({ isProblem: false, text: "Follow the link in the mail you get, then sign in." });
        setIsNew(false);
      }
    } catch (error) {
      setNotice({ isProblem: true, text: error instanceof Error ? error.message : String(error) });
    } finally {
      setIsBusy(false);
    }
  };
  return /* @__PURE__ */ jsx10("dialog", { ref: dialog, className: "sign-in", "aria-labelledby": title, children: /* @__PURE__ */ jsxs8(
    "form",
    {
      onSubmit: (event) => {
        event.preventDefault();
        void submit(new FormData(event.currentTarget));
      },
      children: [
        /* @__PURE__ */ jsx10("h2", { id: title, children: isNew ? "Create an account" : "Sign in" }),
        /* @__PURE__ */ jsx10("p", { className: "hint", children: isNew ? `Others will see you as ${guestName.trim() || "Guest"}.` : "With an account your messages carry a mark that no guest can have." }),
        /* @__PURE__ */ jsxs8("label", { children: [
          "Email address",
          /* @__PURE__ */ jsx10("input", { name: "email", type: "email", autoComplete: "email", required: true })
        ] }),
        /* @__PURE__ */ jsxs8("label", { children: [
          "Password",
          /* @__PURE__ */ jsx10(
            "input",
            {
              name: "password",
              type: "password",
              autoComplete: isNew ? "new-password" : "current-password",
              minLength: isNew ? 8 : void 0,
              required: true
            }
          )
        ] }),
        notice !== null && /* @__PURE__ */ jsx10("p", { className: notice.isProblem ? "problem" : "notice", role: "alert", children: notice.text }),
        /* @__PURE__ */ jsxs8("div", { className: "buttons", children: [
          /* @__PURE__ */ jsx10("button", { type: "submit", className: "button", disabled: isBusy, children: isNew ? "Create account" : "Sign in" }),
          /* @__PURE__ */ jsx10("button", { type: "button", className: "quiet", onClick: () => dialog.current?.close(), children: "Stay a guest" })
        ] }),
        /* @__PURE__ */ jsx10(
          "button",
          {
            type: "button",
            className: "link",
            onClick: () => {
              setIsNew(!isNew);
              setNotice(null);
            },
            children: isNew ? "I have an account" : "I have no account yet"
          }
        )
      ]
    }
  ) });
}

// app/sidebar.tsx
import { useState as useState7 } from "react";
import { jsx as jsx11, jsxs as jsxs9 } from "react/jsx-runtime";
var DEFAULT_CHANNELS = ["general", "random"];
function Sidebar({ channels, open, onCreate, children }) {
  const names = [.../* @__PURE__ */ new Set([...DEFAULT_CHANNELS, ...channels, open])];
  return /* @__PURE__ */ jsxs9("aside", { className: "sidebar", children: [
    /* @__PURE__ */ jsxs9("div", { className: "brand", children: [
      /* @__PURE__ */ jsx11(Logo, {}),
      /* @__PURE__ */ jsx11("span", { children: "Syncline chat" })
    ] }),
    /* @__PURE__ */ jsxs9("nav", { "aria-label": "Channels", children: [
      /* @__PURE__ */ jsx11("h2", { children: "Channels" }),
      /* @__PURE__ */ jsx11("ul", { className: "channels", children: names.map((name) => /* @__PURE__ */ jsx11("li", { children: /* @__PURE__ */ jsx11(
        "a",
        {
          ref: name === open ? bringIntoView : void 0,
          href: `#${encodeURIComponent(name)}`,
          "aria-current": name === open ? "page" : void 0,
          children: name
        }
      ) }, name)) }),
      /* @__PURE__ */ jsx11(NewChannel, { onCreate })
    ] }),
    children
  ] });
}
function bringIntoView(link) {
  link?.scrollIntoView({ block: "nearest", inline: "nearest" });
}
function NewChannel({ onCreate }) {
  const [name, setName] = useState7("");
  return /* @__PURE__ */ jsxs9(
    "form",
    {
      className: "new-channel",
      onSubmit: async (event) => {
        event.preventDefault();
        if (await onCreate(name)) setName("");
      },
      children: [
        /* @__PURE__ */ jsx11(
          "input",
          {
            "aria-label": "Name of a new channel",
            maxLength: 32,
            placeholder: "New channel",
            autoComplete: "off",
            required: true,
            value: name,
            onChange: (event) => setName(event.target.value)
          }
        ),
        /* @__PURE__ */ jsx11("button", { type: "submit", "aria-label": "Create the channel", children: "+" })
      ]
    }
  );
}
function Logo() {
  return /* @__PURE__ */ jsxs9("svg", { viewBox: "0 0 32 32", width: "28", height: "28", "aria-hidden": "true", children: [
    /* @__PURE__ */ jsx11("rect", { width: "32", height: "32", rx: "9", fill: "var(--accent)" }),
    /* @__PURE__ */ jsx11(
      "path",
      {
        d: "M7 12c5-5 13 5 18 0M7 20c5-5 13 5 18 0",
        fill: "none",
        stroke: "var(--on-accent)",
        strokeWidth: "3",
        strokeLinecap: "round"
      }
    )
  ] });
}

// app/use_channel.ts
import { useEffect as useEffect4, useSyncExternalStore } from "react";
function subscribe(listener) {
  globalThis.addEventListener("hashchange", listener);
  return () => globalThis.removeEventListener("hashchange", listener);
}
function channelOfAddress() {
  try {
    const name = decodeURIComponent(location.hash.slice(1)).slice(0, 32);
    return name.replace(/[\uD800-\uDBFF]$/, "") || "general";
  } catch {
    return "general";
  }
}
function openChannel(name) {
  location.hash = encodeURIComponent(name);
}
function useChannel() {
  const channel = useSyncExternalStore(subscribe, channelOfAddress);
  useEffect4(() => {
    document.title = `#${channel} · Syncline chat`;
  }, [channel]);
  return [channel, openChannel];
}

// app/use_guest_name.ts
import { useState as useState8 } from "react";
var KEY = "chat-name";
function useGuestName() {
  const [name, setName] = useState8(() => stored() ?? `Guest ${100 + Math.floor(Math.random() * 900)}`);
  const change = (next) => {
    setName(next);
    try {
      localStorage.setItem(KEY, next);
    } catch {
    }
  };
  return [name, change];
}
function stored() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

// app/chat.tsx
import { Fragment as Fragment3, jsx as jsx12, jsxs as jsxs10 } from "react/jsx-runtime";
function Chat() {
  const [channel, openChannel2] = useChannel();
  const [guestName, setGuestName] = useGuestName();
  const [problem, setProblem] = useState9("");
  const person = useQuery2(api.people.me) ?? { name: guestName.trim() };
  const channels = useQuery2(api.channels.list);
  const createChannel = useMutation(api.channels.create);
  const signIn = useRef4(null);
  const room = useRoom(channel, guestName);
  const { send, sent } = useSend({ channel, guestName, person });
  const create = async (name) => {
    try {
      openChannel2(await createChannel({ name }));
      setProblem("");
      return true;
    } catch (error) {
      setProblem(messageOf(error));
      return false;
    }
  };
  const post = async (body) => {
    room.stop();
    try {
      await send(body);
      setProblem("");
      return true;
    } catch (error) {
      setProblem(messageOf(error));
      return false;
    }
  };
  return /* @__PURE__ */ jsxs10(Fragment3, { children: [
    /* @__PURE__ */ jsx12(Sidebar, { channels: channels ?? [], open: channel, onCreate: create, children: /* @__PURE__ */ jsx12(
      Me,
      {
        person,
        guestName,
        onGuestName: setGuestName,
        onSignIn: () => signIn.current?.showModal()
      }
    ) }),
    /* @__PURE__ */ jsxs10("main", { children: [
      /* @__PURE__ */ jsxs10("header", { children: [
        /* @__PURE__ */ jsxs10("h1", { children: [
          /* @__PURE__ */ jsx12("span", { "aria-hidden": "true", children: "#" }),
          /* @__PURE__ */ jsx12("span", { children: channel })
        ] }),
        room.present.length > 1 && /* @__PURE__ */ jsxs10("p", { className: "present", title: room.present.join(", "), children: [
          room.present.length,
          " people here"
        ] }),
        /* @__PURE__ */ jsx12(Connection, {})
      ] }),
      /* @__PURE__ */ jsx12(MessageList, { channel, me: person, sent }, channel),
      /* @__PURE__ */ jsx12(TypingLine, { names: room.typing }),
      /* @__PURE__ */ jsx12(Composer, { channel, problem, onInput: room.touch, onSend: post })
    ] }),
    /* @__PURE__ */ jsx12(Unauthenticated2, { children: /* @__PURE__ */ jsx12(SignIn, { dialog: signIn, guestName }) })
  ] });
}
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

// app/error_screen.tsx
import { Component } from "react";
import { jsx as jsx13, jsxs as jsxs11 } from "react/jsx-runtime";
var ErrorScreen = class extends Component {
  state = { problem: null };
  static getDerivedStateFromError(error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
  render() {
    const { problem } = this.state;
    if (problem === null) return this.props.children;
    return /* @__PURE__ */ jsxs11("div", { className: "error-screen", role: "alert", children: [
      /* @__PURE__ */ jsx13("strong", { children: "This cannot be shown." }),
      /* @__PURE__ */ jsx13("p", { children: problem }),
      /* @__PURE__ */ jsx13("button", { type: "button", className: "button", onClick: () => this.setState({ problem: null }), children: "Try again" })
    ] });
  }
};

// app/main.tsx
import { jsx as jsx14 } from "react/jsx-runtime";
var client = new SynclineClient(location.origin);
var place = document.getElementById("root");
if (place === null) throw new Error("The page has no element for the chat");
createRoot(place).render(
  /* @__PURE__ */ jsx14(StrictMode, { children: /* @__PURE__ */ jsx14(ErrorScreen, { children: /* @__PURE__ */ jsx14(SynclineProvider, { client, children: /* @__PURE__ */ jsx14(Chat, {}) }) }) })
);
