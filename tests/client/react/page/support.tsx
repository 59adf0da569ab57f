/** Support of the scenarios: a client whose messages are counted, a mounted tree, waiting. */
import { Component, type ReactNode, StrictMode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { FunctionError, SynclineClient, type WebSocketFactory } from "syncline/client";
import { SynclineProvider } from "syncline/react";
import { pause, until } from "../../../support/waiting.ts";

/** Counts of the query messages that a client sent. */
export class Wire {
  adds = 0;
  removes = 0;
  /** Messages that changed the set of queries. */
  messages = 0;
  /** Live queries by id. */
  readonly live = new Map<number, { udfPath: string; args: Record<string, unknown> }>();

  readonly factory = (() => {
    const seen = (text: string) => this.#seen(text);
    return class extends WebSocket {
      override send(data: string): void {
        seen(data);
        super.send(data);
      }
    };
  })() as unknown as WebSocketFactory;

  #seen(text: string): void {
    const message = JSON.parse(text);
    if (message.type !== "ModifyQuerySet") return;
    this.messages++;
    for (const { type, queryId, udfPath, args } of message.modifications) {
      if (type === "Add") {
        this.adds++;
        this.live.set(queryId, { udfPath, args });
      } else {
        this.removes++;
        this.live.delete(queryId);
      }
    }
  }
}

export interface Mounted {
  readonly client: SynclineClient;
  readonly wire: Wire;
  readonly root: Root;
  readonly place: HTMLElement;
  /** Replaces the rendered tree. */
  show(tree: ReactNode): void;
  /** Unmounts the tree, waits until its queries are removed, and closes the client. */
  end(): Promise<void>;
}

/** Renders a tree in strict mode with a separate client. */
export function mount(tree: ReactNode): Mounted {
  const wire = new Wire();
  const client = new SynclineClient(location.origin, { webSocket: wire.factory });
  const place = document.body.appendChild(document.createElement("div"));
  const root = createRoot(place, { onCaughtError: () => {} });
  const show = (shown: ReactNode) =>
    root.render(
      <StrictMode>
        <SynclineProvider client={client}>{shown}</SynclineProvider>
      </StrictMode>,
    );
  show(tree);
  const end = async () => {
    root.unmount();
    place.remove();
    await pause(20);
    client.close();
  };
  return { client, wire, root, place, show, end };
}

export { pause, until };

/** Renders the code of an error below it, and its children again when `again` is clicked. */
export class Boundary extends Component<{ children?: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    const text = error instanceof FunctionError ? `${error.code}: ${error.message}` : String(error);
    return <button type="button" onClick={() => this.setState({ error: null })}>{text}</button>;
  }
}
