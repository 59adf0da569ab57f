/** Live result of a query under any identity. */
import { useEffect, useState } from "react";
import { functionReference, type SynclineClient } from "syncline/client";
import { useSyncline } from "syncline/react";
import { api, type RunAs } from "../../server/api.ts";
import { Badge } from "../../ui/badge.tsx";
import { countOf } from "../../ui/format.tsx";
import { Card } from "../../ui/view.tsx";
import { openClientAs } from "./identity_client.ts";

export interface Watched {
  readonly path: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly internal: boolean;
  /** Run identity. Internal queries always run as the administrator. */
  readonly as: RunAs;
}

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
