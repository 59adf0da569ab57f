/** Layout of a view: header, cards, and empty and loading states. */
import type { ReactNode } from "react";

export function View(
  { title, text, actions, children }: {
    readonly title: string;
    readonly text?: ReactNode;
    readonly actions?: ReactNode;
    readonly children: ReactNode;
  },
) {
  return (
    <main className="view" id="view" tabIndex={-1}>
      <header className="view-head">
        <div className="grow">
          <h1>{title}</h1>
          {text && <p className="quiet">{text}</p>}
        </div>
        {actions && <div className="row">{actions}</div>}
      </header>
      <div className="view-body">{children}</div>
    </main>
  );
}

export function Card(
  { title, actions, children, flush = false }: {
    readonly title?: ReactNode;
    readonly actions?: ReactNode;
    readonly children: ReactNode;
    /** Whether the content extends to the edges of the card, as tables do. */
    readonly flush?: boolean;
  },
) {
  return (
    <section className="card">
      {title && (
        <div className="card-head">
          <h2 className="grow">{title}</h2>
          {actions}
        </div>
      )}
      {flush
        // Scroll containers must be focusable for keyboard users.
        ? <div className="table-scroll" tabIndex={0}>{children}</div>
        : <div className="card-body">{children}</div>}
    </section>
  );
}

export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}

export function Loading() {
  return <div className="empty" role="status">Loading…</div>;
}
