/** Migrations: an internal mutation for each document of a table, tried out first, run step by step with its progress. */
import { type FormEvent, useEffect, useRef, useState } from "react";
import { useAction, useQuery } from "syncline/react";
import type { MigrationInfo } from "../../../../mod/ops/deploy/isolate_functions/migrations.ts";
import { api } from "../../server/api.ts";
import { askOnce } from "../../server/ask_once.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { SelectField } from "../../ui/field.tsx";
import { attempt, note } from "../../ui/notes.tsx";
import { count, Time } from "../../ui/texts.tsx";
import { Card, Empty } from "../../ui/view.tsx";

/** What a migration runs, and for which table. */
interface Place {
  readonly path: string;
  readonly table: string;
}

export function Migrations() {
  const migrations = useQuery(api.migrations.list);
  const begin = useAction(api.migrations.begin);
  const step = useAction(api.migrations.step);
  const [choosing, setChoosing] = useState(false);
  /** Ids of those that this page runs. */
  const [running, setRunning] = useState<ReadonlySet<string>>(new Set());
  const left = useRef(false);
  useEffect(() => {
    left.current = false;
    return () => void (left.current = true);
  }, []);

  /** Runs steps until all documents are done, or the page is left: how far it came is kept. */
  async function run(place: Place, anew: boolean): Promise<void> {
    const { migrationId } = await begin({ ...place, anew });
    const still = (on: boolean) =>
      setRunning((before) =>
        new Set(on ? [...before, migrationId] : [...before].filter((id) => id !== migrationId))
      );
    still(true);
    try {
      let now = await step({ migrationId });
      while (!now.done && !left.current) now = await step({ migrationId, rows: now.rows });
      if (now.done) note(`${place.path} is through: ${count(now.documents)} documents.`);
    } finally {
      still(false);
    }
  }

  return (
    <Card
      flush
      title="Migrations"
      actions={<Button onClick={() => setChoosing(true)}>Run a migration…</Button>}
    >
      {migrations?.length === 0 && (
        <Empty title="No migration has run">
          <p>An internal mutation that takes the id of a document is run for each document of a table.</p>
        </Empty>
      )}
      {migrations !== undefined && migrations.length > 0 && (
        <table className="table">
          <thead>
            <tr>
              <th>Mutation</th>
              <th>Table</th>
              <th>Begun</th>
              <th>Progress</th>
              <th>
                <span className="sr-only">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {migrations.map((migration) => (
              <tr key={migration.migrationId}>
                <td className="mono">{migration.path}</td>
                <td>{migration.table}</td>
                <td>
                  <Time at={migration.begunAt} as="ago" />
                </td>
                <td>
                  <Progress migration={migration} />
                </td>
                <td className="number">
                  {migration.state === "running" && !running.has(migration.migrationId) && (
                    <Button onClick={() => void attempt(() => run(migration, false))}>Go on</Button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {choosing && (
        <Choose
          onClose={() => setChoosing(false)}
          onRun={(place) => {
            setChoosing(false);
            void attempt(() => run(place, false));
          }}
        />
      )}
    </Card>
  );
}

function Progress(
  { migration: { table, documents, state, endedAt } }: { readonly migration: MigrationInfo },
) {
  const [all, setAll] = useState<number | null>(null);
  useEffect(() => {
    if (state === "done") return;
    askOnce(api.data.count, { table } as never).then(({ count }) => setAll(count), () => {});
  }, [table, state]);
  if (state === "done") {
    return (
      <>
        <Badge tone="good">done</Badge> {count(documents)} documents
        {endedAt !== null && (
          <>
            , <Time at={endedAt} as="ago" />
          </>
        )}
      </>
    );
  }
  return (
    <span className="row">
      <progress
        aria-label={`Documents of ${table}`}
        {...(all !== null && { value: documents, max: Math.max(all, 1) })}
      />
      {count(documents)}
      {all !== null && ` of about ${count(Math.max(all, documents))}`}
    </span>
  );
}

function Choose(
  { onRun, onClose }: { readonly onRun: (place: Place) => void; readonly onClose: () => void },
) {
  const functions = useQuery(api.functions.list) ?? [];
  const tables = useQuery(api.data.tables) ?? [];
  const tryOut = useAction(api.migrations.tryOut);
  const [tried, setTried] = useState<string | null>(null);
  const form = useRef<HTMLFormElement>(null);
  const mutations = functions.filter(({ kind, visibility, path }) =>
    kind === "mutation" && visibility === "internal" && !path.startsWith("_")
  );
  const place = (): Place => {
    const given = new FormData(form.current ?? undefined);
    return { path: String(given.get("path")), table: String(given.get("table")) };
  };
  function submit(event: FormEvent<HTMLFormElement>): void {
    event.preventDefault();
    onRun(place());
  }
  return (
    <Dialog
      open
      title="Run a migration"
      text="One that was left goes on where it was. You can leave this page: what is done stays done, and it can be gone on with."
      onClose={onClose}
      foot={
        <>
          <Button
            disabled={mutations.length === 0}
            onClick={() =>
              void attempt(async () => {
                setTried(null);
                const { documents, changed } = await tryOut(place());
                setTried(
                  `Tried on ${count(documents)} documents, of which it changes ${
                    count(changed)
                  }. Nothing is stored.`,
                );
              })}
          >
            Try it out
          </Button>
          <Button type="submit" form="migration" tone="accent" disabled={mutations.length === 0}>Run</Button>
        </>
      }
    >
      {mutations.length === 0
        ? <Empty title="The app has no internal mutation that takes an id" />
        : (
          <form id="migration" ref={form} className="stack" onSubmit={submit}>
            <SelectField label="Internal mutation" name="path">
              {mutations.map(({ path }) => <option key={path}>{path}</option>)}
            </SelectField>
            <SelectField label="Table" name="table">
              {tables.filter(({ ofService }) => !ofService).map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </SelectField>
            {tried !== null && <p role="status">{tried}</p>}
          </form>
        )}
    </Dialog>
  );
}
