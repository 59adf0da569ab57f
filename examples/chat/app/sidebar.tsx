/** The side: brand, channels, and who one is. */
import { type ReactNode, useState } from "react";

/** Channels that are there from the start. */
const DEFAULT_CHANNELS = ["general", "random"];

interface SidebarProps {
  readonly channels: readonly string[];
  /** Name of the open channel. */
  readonly open: string;
  /** Creates a channel and opens it. Returns whether that succeeded. */
  readonly onCreate: (name: string) => Promise<boolean>;
  readonly children?: ReactNode;
}

export function Sidebar({ channels, open, onCreate, children }: SidebarProps) {
  const names = [...new Set([...DEFAULT_CHANNELS, ...channels, open])];
  return (
    <aside className="sidebar">
      <div className="brand">
        <Logo />
        <span>Syncline chat</span>
      </div>
      <nav aria-label="Channels">
        <h2>Channels</h2>
        <ul className="channels">
          {names.map((name) => (
            <li key={name}>
              <a
                ref={name === open ? bringIntoView : undefined}
                href={`#${encodeURIComponent(name)}`}
                aria-current={name === open ? "page" : undefined}
              >
                {name}
              </a>
            </li>
          ))}
        </ul>
        <NewChannel onCreate={onCreate} />
      </nav>
      {children}
    </aside>
  );
}

function bringIntoView(link: HTMLElement | null) {
  link?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function NewChannel({ onCreate }: Pick<SidebarProps, "onCreate">) {
  const [name, setName] = useState("");
  return (
    <form
      className="new-channel"
      onSubmit={async (event) => {
        event.preventDefault();
        if (await onCreate(name)) setName("");
      }}
    >
      <input
        aria-label="Name of a new channel"
        maxLength={32}
        placeholder="New channel"
        autoComplete="off"
        required
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <button type="submit" aria-label="Create the channel">+</button>
    </form>
  );
}

function Logo() {
  return (
    <svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
      <rect width="32" height="32" rx="9" fill="var(--accent)" />
      <path
        d="M7 12c5-5 13 5 18 0M7 20c5-5 13 5 18 0"
        fill="none"
        stroke="var(--on-accent)"
        strokeWidth="3"
        strokeLinecap="round"
      />
    </svg>
  );
}
