/** Where messages are written. */
import { type KeyboardEvent, useRef, useState } from "react";

interface ComposerProps {
  readonly channel: string;
  /** The last error; empty if there is none. */
  readonly problem: string;
  /** Called with the draft on each change. */
  readonly onInput: (text: string) => void;
  /** Sends a message. Returns whether that succeeded. */
  readonly onSend: (body: string) => Promise<boolean>;
}

export function Composer({ channel, problem, onInput, onSend }: ComposerProps) {
  const [text, setText] = useState("");
  const box = useRef<HTMLTextAreaElement>(null);

  const submit = async () => {
    const body = text.trim();
    if (body === "") return;
    setText("");
    box.current?.focus();
    // Restore the draft unless the user has typed a new one.
    if (!await onSend(body)) setText((now) => now === "" ? body : now);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // While a word is being composed, Enter belongs to the input method.
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    void submit();
  };

  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {problem !== "" && <p className="problem" role="alert">{problem}</p>}
      <textarea
        ref={box}
        aria-label="Message"
        rows={1}
        maxLength={2000}
        placeholder={`Write to #${channel}`}
        enterKeyHint="send"
        autoComplete="off"
        autoFocus
        value={text}
        onKeyDown={onKeyDown}
        onChange={(event) => {
          setText(event.target.value);
          onInput(event.target.value);
        }}
      />
      <button type="submit" className="send">
        <span className="visually-hidden">Send</span>
        <svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true">
          <path
            d="M4.5 12h9M4 4.5l16 7.5-16 7.5 2.2-7.5z"
            fill="none"
            stroke="currentColor"
            strokeWidth="1.8"
            strokeLinejoin="round"
            strokeLinecap="round"
          />
        </svg>
      </button>
    </form>
  );
}
