/** The live result of a query under any identity. */
import { useEffect, useState } from "react";
import { functionReference, SynclineClient } from "syncline/client";
import { useSyncline } from "syncline/react";
import { adminSession } from "../../server/admin_session.ts";
import { api, type RunAs } from "../../server/api.ts";
import { Badge } from "../../ui/controls.tsx";
import { countOf } from "../../ui/format.tsx";
import { Card } from "../../ui/view.tsx";

interface IdentityClient {
  readonly client: SynclineClient;
  readonly end: () => Promise<void>;
}

/**
 * Opens a client for the identity. For a user it creates a session, which the user's details show as an impersonation.
 *
 * @param onEnded Called when that session has ended.
 */
async function openClientAs(
  as: Exclude<RunAs, { readonly adminId: string }>,
  onEnded: () => void,
): Promise<IdentityClient> {
  const client = new SynclineClient(location.origin);
  if (as === null) {
    return {
      client,
      end() {
        client.close();
        return Promise.resolve();
      },
    };
  }
  const response = await adminSession.fetch("/api/admin/impersonate", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ userId: as.userId }),
  });
  const { accessToken } = await response.json() as { readonly accessToken: string };
  // Without its token the client would continue signed out.
  client.setAuth(() => Promise.resolve(accessToken), (isAuthenticated) => {
    if (isAuthenticated) return;
    onEnded();
    client.close();
  });
  return {
    client,
    async end() {
      client.close();
      await fetch("/api/auth/signout", {
        method: "POST",
        headers: { "Content-Type": "application/json", Authorization: `Bearer ${accessToken}` },
        body: "{}",
      });
    },
  };
}

export interface Watched {
  readonly path: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly internal: boolean;
  /** Run identity. Internal queries always run as the administrator. */
  readonly as: RunAs;
}

/** Live result of a query under any identity. */
export function LiveResult({ watched }: { readonly watched: Watched }) {
  const own = useSyncline();
  const [shown, setShown] = useState<{ readonly text: string; readonly failed: boolean } | null>(null);
  const [changes, setChanges] = useState(0);
  useEffect(() => {
    const show = (text: string, failed: boolean) => {
      setShown({ text, failed });
      setChanges((before) => before + 1);
    };
    return watch(own, {
      watched,
      onValue: (value) => show(JSON.stringify(value, null, 2) ?? "", false),
      onError: (error) => show(error.message, true),
    });
  }, [own, watched]);
  return (
    <Card
      title={
        <>
          Live <Badge tone={shown?.failed ? "bad" : "good"}>{countOf(changes, "result")}</Badge>
        </>
      }
    >
      {watched.internal && (
        <p className="quiet">Internal queries run as you, because clients cannot call them.</p>
      )}
      <pre className="result" aria-live="polite">{shown?.text ?? "Waiting for the first result…"}</pre>
    </Card>
  );
}

interface Watching {
  readonly watched: Watched;
  readonly onValue: (value: unknown) => void;
  readonly onError: (error: Error) => void;
}

/** Subscribes, and returns a function that unsubscribes. */
function watch(
  own: SynclineClient,
  { watched: { path, args, internal, as }, onValue, onError }: Watching,
): () => void {
  if (internal) return own.subscribe(api.functions.watch, { path, args }, onValue, onError);
  const query = functionReference<"query", Record<string, unknown>, unknown>(path);
  if (as !== null && "adminId" in as) return own.subscribe(query, args, onValue, onError);
  let gone = false;
  const ended = () => {
    if (!gone) onError(new Error("Session ended"));
    gone = true;
  };
  // Closing the client also fails its subscriptions; keep showing the original reason.
  const failed = (error: Error) => gone || onError(error);
  const watcher = openClientAs(as, ended);
  watcher.then(({ client }) => gone || client.subscribe(query, args, onValue, failed), failed);
  return () => {
    gone = true;
    // A session that could not be ended expires soon.
    watcher.then(({ end }) => end()).catch(() => {});
  };
}
