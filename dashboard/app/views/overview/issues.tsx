/** Issues found by the server, each with a link to the view that resolves it. They can be acknowledged and muted. */
import { useMutation, useQuery } from "syncline/react";
import type { IssueNote } from "../../../../mod/ops/alerts/isolate_functions.ts";
import type { Issue } from "../../../../mod/ops/alerts/issues.ts";
import { api } from "../../server/api.ts";
import { href } from "../../shell/route.ts";
import { Button, Icon } from "../../ui/controls.tsx";
import { countOf, Time } from "../../ui/format.tsx";
import { attempt } from "../../ui/toasts.tsx";
import { useRequest } from "../../ui/use_request.tsx";
import { Card } from "../../ui/view.tsx";

const ASKED_EVERY_MS = 30_000;
const DAY_MS = 86_400_000;

export function Issues() {
  const { value: issues, error } = useRequest<readonly Issue[]>("_admin/alerts:issues", ASKED_EVERY_MS);
  const notes = new Map(useQuery(api.alerts.notes)?.map((note) => [note.key, note]));
  const isQuiet = ({ key }: Issue) => isKnown(notes.get(key));
  const loud = issues?.filter((issue) => !isQuiet(issue)) ?? [];
  const quiet = issues?.filter(isQuiet) ?? [];
  return (
    <Card title="Issues" flush actions={<a href={href(["settings", "alerts"])}>Alerts</a>}>
      {loud.length > 0 && <List issues={loud} notes={notes} />}
      {loud.length === 0 && (
        <p className="no-issues">
          {error !== null ? <span role="alert">{error}</span> : issues === undefined ? "Checking…" : (
            <>
              <span data-tone="good">
                <Icon name="check" />
              </span>{" "}
              {quiet.length === 0 ? "No issues" : "No new issues"}
            </>
          )}
        </p>
      )}
      {quiet.length > 0 && (
        <details>
          <summary>{countOf(quiet.length, "known issue")}</summary>
          <List issues={quiet} notes={notes} />
        </details>
      )}
    </Card>
  );
}

/** Whether an issue was acknowledged or is muted. */
function isKnown(note: IssueNote | undefined): boolean {
  return note !== undefined && (note.acknowledgedBy !== null || (note.mutedUntil ?? 0) > Date.now());
}

function List({ issues, notes }: {
  readonly issues: readonly Issue[];
  readonly notes: ReadonlyMap<string, IssueNote>;
}) {
  return (
    <ul className="issues">
      {issues.map((issue) => <Item key={issue.key} issue={issue} note={notes.get(issue.key)} />)}
    </ul>
  );
}

function Item({ issue: { key, tone, text, act, view }, note }: {
  readonly issue: Issue;
  readonly note: IssueNote | undefined;
}) {
  const acknowledge = useMutation(api.alerts.acknowledge);
  const mute = useMutation(api.alerts.mute);
  const resume = useMutation(api.alerts.resume);
  const known = isKnown(note);
  return (
    <li>
      <span data-tone={known ? undefined : tone}>
        <Icon name="warn" />
      </span>
      <span className="grow">
        {text} <Known note={note} />
      </span>
      {known
        ? (
          <Button
            tone="plain"
            needs="editor"
            onClick={() => void attempt(() => resume({ issue: key }))}
          >
            Show again
          </Button>
        )
        : (
          <>
            <Button
              tone="plain"
              needs="editor"
              title="No alerts until it ends"
              onClick={() => void attempt(() => acknowledge({ issue: key, text }))}
            >
              Acknowledge
            </Button>
            <Button
              tone="plain"
              needs="editor"
              title="No alerts for 24 hours"
              onClick={() => void attempt(() => mute({ issue: key, text, forMs: DAY_MS }))}
            >
              Mute
            </Button>
          </>
        )}
      <a className="button" href={`#/${view}`}>{act}</a>
    </li>
  );
}

function Known({ note }: { readonly note: IssueNote | undefined }) {
  if (note === undefined || !isKnown(note)) return null;
  const { acknowledgedBy, mutedUntil } = note;
  return (
    <span className="quiet">
      {acknowledgedBy !== null ? `acknowledged by ${acknowledgedBy}` : (
        <>
          muted until <Time at={mutedUntil ?? 0} />
        </>
      )}
    </span>
  );
}
