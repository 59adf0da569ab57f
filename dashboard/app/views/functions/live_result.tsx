/** The result of a query as it changes, as the administrator sees it. */
import { useEffect, useState } from "react";
import { useSyncline } from "syncline/react";
import { Badge } from "../../ui/badge.tsx";
import { count } from "../../ui/texts.tsx";
import { Card } from "../../ui/view.tsx";

export function LiveResult({ path, args }: {
  readonly path: string;
  readonly args: Readonly<Record<string, unknown>>;
}) {
  const client = useSyncline();
  const [shown, setShown] = useState<{ readonly text: string; readonly failed: boolean } | null>(null);
  const [changes, setChanges] = useState(0);
  useEffect(() => {
    const show = (text: string, failed: boolean) => {
      setShown({ text, failed });
      setChanges((before) => before + 1);
    };
    return client.subscribe(
      path,
      args,
      (value) => show(JSON.stringify(value, null, 2), false),
      (error) => show(error.message, true),
    );
  }, [client, path, args]);
  return (
    <Card
      title={
        <>
          Live <Badge tone={shown?.failed ? "bad" : "good"}>{count(changes)} results so far</Badge>
        </>
      }
    >
      <pre className="result" aria-live="polite">{shown?.text ?? "Waiting for the first result…"}</pre>
    </Card>
  );
}
