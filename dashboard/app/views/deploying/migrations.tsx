/** Migrations: an internal mutation for each document of a table, tried out first, run by the server with its progress. */
import { type FormEvent, useEffect, useRef, useState } from "react";
import { useAction, useMutation, useQuery } from "syncline/react";
import type { MigrationInfo } from "../../../../mod/ops/deploy/isolate_functions/migrations.ts";
import { api } from "../../server/api.ts";
import { askOnce } from "../../server/ask_once.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { CheckField, SelectField } from "../../ui/field.tsx";
import { attempt } from "../../ui/notes.tsx";
import { TableCard } from "../../ui/table.tsx";
import { count, Time } from "../../ui/texts.tsx";
import { Empty } from "../../ui/view.tsx";

/** What a migration runs, and for which table. */
interface Place {
  readonly path: string;
  readonly table: string;
}

export function Migrations() {
  const migrations = useQuery(api.migrations.list);
  const start = useAction(api.migrations.run);
  const halt = useMutation(api.migrations.halt);
  const [choosing, setChoosing] = useState(false);
  const run = (place: Place & { readonly anew?: boolean }) =>
    attempt(() => start(place), "It runs on the server: you can leave this page.");

  return (
    <>
      <TableCard
        title="Migrations"
        tools={<Button onClick={() => setChoosing(true)}>Run a migration…</Button>}
        none={{
          title: "No migration has run",
          text: "An internal mutation that takes the id of a document is run for each document of a table.",
        }}
        head={["Mutation", "Progress", "Table", "Begun"]}
        actions
        rows={migrations}
        row={(migration) => {
          const { migrationId, path, table, begunAt, state, onServer } = migration;
          return (
            <tr key={migrationId}>
              <td className="mono">{path}</td>
              <td className="wrap">
                <Progress migration={migration} />
              </td>
              <td>{table}</td>
              <td>
                <Time at={begunAt} as="ago" />
              </td>
              <td className="number">
                {onServer && <Button onClick={() => void attempt(() => halt({ migrationId }))}>Stop</Button>}
                {state === "running" && !onServer && (
                  <Button onClick={() => void run({ path, table })}>Go on</Button>
                )}
              </td>
            </tr>
          );
        }}
      />
      {choosing && (
        <Choose
          onClose={() => setChoosing(false)}
          onRun={(place) => {
            setChoosing(false);
            void run(place);
          }}
        />
      )}
    </>
  );
}

function Progress(
  { migration: { table, documents, state, onServer, error, endedAt } }: {
    readonly migration: MigrationInfo;
  },
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
    <div className="stack tight">
      <span className="row">
        {onServer
          ? <Badge tone="accent">runs</Badge>
          : error === null
          ? <Badge>waits</Badge>
          : <Badge tone="bad">failed</Badge>}
        <progress
          aria-label={`Documents of ${table}`}
          {...(all !== null ? { value: documents, max: Math.max(all, 1) } : !onServer && { value: 0 })}
        />
        {count(documents)}
        {all !== null && ` of about ${count(Math.max(all, documents))}`}
      </span>
      {error !== null && <span className="field-error">{error}</span>}
    </div>
  );
}

function Choose(
  { onRun, onClose }: {
    readonly onRun: (place: Place & { readonly anew: boolean }) => void;
    readonly onClose: () => void;
  },
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
    onRun({ ...place(), anew: new FormData(event.currentTarget).get("anew") !== null });
  }
  return (
    <Dialog
      open
      title="Run a migration"
      text="The server runs it, step by step: you can leave this page. One that was stopped goes on where it was."
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
            <CheckField label="From the first document, also where it was stopped" name="anew" />
            {tried !== null && <p role="status">{tried}</p>}
          </form>
        )}
    </Dialog>
  );
}
