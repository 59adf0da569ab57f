/** The frame: navigation, connection state, and the view that the address names. */
import {
  Component,
  Fragment,
  lazy,
  type ReactNode,
  Suspense,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { useConnectionState, useQuery } from "syncline/react";
import { adminSession } from "../server/admin_session.ts";
import { api } from "../server/api.ts";
import { Badge, Button, Icon } from "../ui/controls.tsx";
import { ROLE_TEXTS } from "../ui/access.tsx";
import { dismissErrors } from "../ui/toasts.tsx";
import { Empty, Loading, NO_ANSWER, View } from "../ui/view.tsx";
import { href, useRoute } from "./route.ts";
import { toggleTheme } from "./theme.ts";
import { viewGroups } from "./view_names.ts";
import type { Typed } from "./palette.tsx";
import { viewNamed } from "./views.ts";

/** Opens the search. */
const SEARCH_KEYS = /Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘K" : "Ctrl K";

const loadPalette = () => import("./palette.tsx");
const Palette = lazy(async () => ({ default: (await loadPalette()).Palette }));
const Shortcuts = lazy(async () => ({ default: (await import("./shortcuts.tsx")).Shortcuts }));
const TaskStrip = lazy(async () => {
  // Load the view first.
  await new Promise<void>((resolve) => afterFirstView(resolve));
  return { default: (await import("./task_strip.tsx")).TaskStrip };
});

export function Shell() {
  const { path: [name = "overview"] } = useRoute();
  const [navOpen, setNavOpen] = useState(false);
  const [palette, setPalette] = useState(false);
  const typed = useRef<Typed>(null);
  const [help, setHelp] = useState(false);
  const environment = useQuery(api.settings.environment);
  useEffect(() => {
    setNavOpen(false);
    setPalette(false);
    setHelp(false);
  }, [name]);
  // Before the effects of the view, which may show an error.
  useLayoutEffect(dismissErrors, [name]);
  // Keys typed right after Ctrl+K would be lost while the palette loads.
  useEffect(() => afterFirstView(() => void loadPalette().catch(() => {})), []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setPalette(!palette);
        typed.current = palette ? null : { text: "", at: performance.now() };
        return;
      }
      // The palette has not opened yet.
      const early = typed.current;
      if (
        early !== null && performance.now() - early.at < TYPED_MS && event.key.length === 1 &&
        !event.ctrlKey && !event.metaKey
      ) {
        event.preventDefault();
        early.text += event.key;
        return;
      }
      if (event.key === "?" && !isTyping(event.target)) setHelp(true);
      if (event.key === "Escape") setNavOpen(false);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [palette]);
  const entry = viewNamed(name);
  return (
    <div className="shell">
      <header className="top">
        <Button
          tone="plain"
          aria-label="Navigation"
          aria-expanded={navOpen}
          onClick={() => setNavOpen(!navOpen)}
        >
          <Icon name="menu" />
        </Button>
        <strong>{entry?.title ?? "Syncline"}</strong>
        <Environment {...environment} />
      </header>
      {navOpen && <div className="scrim" onClick={() => setNavOpen(false)} />}
      <Side current={name} open={navOpen} onSearch={() => setPalette(true)} onHelp={() => setHelp(true)}>
        <Environment {...environment} />
      </Side>
      <div className="stage">
        <Connection />
        <ErrorBoundary key={name}>
          <Suspense fallback={<Loading />}>
            {entry === undefined
              ? (
                <View title="Not found">
                  <Empty title="This page does not exist" />
                </View>
              )
              : <entry.View />}
          </Suspense>
        </ErrorBoundary>
        <Part>
          <TaskStrip />
        </Part>
      </div>
      <Part>{palette && <Palette typed={typed} onClose={() => setPalette(false)} />}</Part>
      <Part>{help && <Shortcuts onClose={() => setHelp(false)} />}</Part>
    </div>
  );
}

/** How long keys are kept for a palette that does not open. */
const TYPED_MS = 3_000;

/** Whether keys are text. */
function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** The name of the environment, so that production is not mistaken for another one. */
function Environment({ name, color }: { readonly name?: string | null; readonly color?: string | null }) {
  if (!name) return null;
  return <span className="environment" data-color={color ?? "gray"}>{name}</span>;
}

function afterFirstView(then: () => void): void {
  // Safari has no requestIdleCallback.
  if ("requestIdleCallback" in globalThis) requestIdleCallback(then, { timeout: 2_000 });
  else setTimeout(then, 500);
}

function Side(
  { current, open, onSearch, onHelp, children }: {
    readonly current: string;
    readonly open: boolean;
    readonly onSearch: () => void;
    readonly onHelp: () => void;
    /** Shown below the name of the product. */
    readonly children: ReactNode;
  },
) {
  const me = useQuery(api.administrators.me);
  return (
    <aside className="side" data-open={open}>
      <Button className="skip" onClick={() => document.getElementById("view")?.focus()}>
        Skip to content
      </Button>
      <a className="brand" href={href(["overview"])}>
        <img src="./icon.svg" alt="" width="20" height="20" /> Syncline
      </a>
      {children}
      <Button className="nav-button" onClick={onSearch}>
        <Icon name="search" /> Go to… <span className="keys">{SEARCH_KEYS}</span>
      </Button>
      <nav aria-label="Views">
        {viewGroups.map(({ title: group, views }) => (
          <Fragment key={group}>
            {group !== null && <p className="nav-title" id={`nav-${group}`}>{group}</p>}
            <ul className="nav" aria-labelledby={group === null ? undefined : `nav-${group}`}>
              {views.map(({ name, title, icon }) => (
                <li key={name}>
                  <a href={href([name])} aria-current={name === current ? "page" : undefined}>
                    <Icon name={icon} /> {title}
                  </a>
                </li>
              ))}
            </ul>
          </Fragment>
        ))}
      </nav>
      <div className="end">
        <Button tone="plain" className="nav-button" onClick={onHelp}>
          <Icon name="help" /> Help <span className="keys">?</span>
        </Button>
        <Button tone="plain" aria-label="Theme" title="Theme" onClick={toggleTheme}>
          <Icon name="theme" />
        </Button>
        <Button
          tone="plain"
          aria-label="Sign out"
          title="Sign out"
          onClick={() => void adminSession.signOut()}
        >
          <Icon name="out" />
        </Button>
        <p className="account" title={me ? `${me.email}\n${me.role}: ${ROLE_TEXTS[me.role]}` : undefined}>
          <span className="grow">{me?.email}</span> {me && <Badge>{me.role}</Badge>}
        </p>
      </div>
    </aside>
  );
}

/** Shows a banner while the connection is lost, above dialogs, which move down by its height. */
function Connection() {
  const { isConnected, hasEverConnected } = useConnectionState();
  const lost = !isConnected && hasEverConnected;
  useEffect(() => {
    document.documentElement.toggleAttribute("data-offline", lost);
    return () => document.documentElement.removeAttribute("data-offline");
  }, [lost]);
  if (!lost) return null;
  return <p className="banner offline" role="status">{NO_ANSWER} Data may be out of date.</p>;
}

/** Contains the failure of a view so that the others stay usable. */
class ErrorBoundary extends Component<{ readonly children: ReactNode }, { readonly error: unknown }> {
  override state: { readonly error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown): { readonly error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    if (isLoadFailure(error)) return <LoadFailure />;
    return (
      <View title="Something went wrong">
        <Empty title={error instanceof Error ? error.message : String(error)}>
          <Button onClick={() => this.setState({ error: null })}>Try again</Button>
        </Empty>
      </View>
    );
  }
}

/** A part of the frame that is loaded when it is needed. If that fails, the rest stays usable. */
class Part extends Component<{ readonly children: ReactNode }, { readonly failed: boolean }> {
  override state: { readonly failed: boolean } = { failed: false };

  static getDerivedStateFromError(): { readonly failed: boolean } {
    return { failed: true };
  }

  override render(): ReactNode {
    return this.state.failed ? null : <Suspense>{this.props.children}</Suspense>;
  }
}

/** Whether a module failed to load. Browsers cache that failure until the page is reloaded. */
function isLoadFailure(error: unknown): boolean {
  return error instanceof TypeError && /import|module/i.test(error.message);
}

const PROBED_EVERY_MS = 2_000;
/** Time of the last automatic reload, in session storage. */
const RELOADED = "syncline.reloaded";
/** Minimum time between automatic reloads, so that a broken server does not cause a loop. */
const RELOAD_EVERY_MS = 60_000;

/** A view whose script could not be loaded. Reloads the page as soon as the server answers. */
function LoadFailure() {
  const [answers, setAnswers] = useState(false);
  useEffect(() => {
    const probe = async () => {
      const { ok } = await fetch(location.pathname, { method: "HEAD", cache: "no-store" });
      if (!ok) return;
      setAnswers(true);
      if (Date.now() - Number(sessionStorage.getItem(RELOADED)) < RELOAD_EVERY_MS) return;
      sessionStorage.setItem(RELOADED, String(Date.now()));
      location.reload();
    };
    const timer = setInterval(() => void probe().catch(() => setAnswers(false)), PROBED_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <View title="This view could not be loaded">
      <Empty title={answers ? "The server answers again." : NO_ANSWER}>
        <Button onClick={() => location.reload()}>Reload</Button>
      </Empty>
    </View>
  );
}
