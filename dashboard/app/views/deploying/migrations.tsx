/** Data migrations: an internal mutation that the server runs for each document of a table, after an optional dry run. */
import { type FormEvent, useEffect, useRef, useState } from "react";
import { useAction, useMutation, useQuery } from "syncline/react";
import type { MigrationInfo } from "../../../../mod/ops/deploy/isolate_functions/migrations.ts";
import { api } from "../../server/api.ts";
import { queryOnce } from "../../server/admin_session.ts";
import { Badge, Button, CheckField, SelectField } from "../../ui/controls.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { attempt } from "../../ui/toasts.tsx";
import { Empty, TableCard } from "../../ui/view.tsx";
import { count, Time } from "../../ui/format.tsx";

/** The mutation of a migration and the table it runs on. */
interface MigrationTarget {
  readonly path: string;
  readonly table: string;
}

export function Migrations() {
  const migrations = useQuery(api.migrations.list);
  const start = useAction(api.migrations.run);
  const halt = useMutation(api.migrations.halt);
  const [choosing, setChoosing] = useState(false);
  const run = (target: MigrationTarget & { readonly fromStart?: boolean }) =>
    attempt(() => start(target), "Migration started. It keeps running if you leave this page.");

  return (
    <>
      <TableCard
        title="Migrations"
        titleActions={<Button needs="editor" onClick={() => setChoosing(true)}>Run a migration…</Button>}
        empty={{
          title: "No migrations yet",
          text:
            "A migration runs an internal mutation for each document of a table. The mutation takes the document's ID.",
        }}
        head={["Mutation", "Progress", "Table", "Started"]}
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
                {onServer && (
                  <Button needs="editor" onClick={() => void attempt(() => halt({ migrationId }))}>
                    Stop
                  </Button>
                )}
                {state === "running" && !onServer && (
                  <Button
                    needs="editor"
                    onClick={() => void run({ path, table })}
                  >
                    Resume
                  </Button>
                )}
              </td>
            </tr>
          );
        }}
      />
      {choosing && (
        <RunMigration
          onClose={() => setChoosing(false)}
          onRun={(target) => {
            setChoosing(false);
            void run(target);
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
    queryOnce(api.data.count, { table } as never).then(({ count }) => setAll(count), () => {});
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
          ? <Badge tone="accent">running</Badge>
          : error === null
          ? <Badge>stopped</Badge>
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

function RunMigration(
  { onRun, onClose }: {
    readonly onRun: (target: MigrationTarget & { readonly fromStart: boolean }) => void;
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
  const chosen = (): MigrationTarget => {
    const given = new FormData(form.current ?? undefined);
    return { path: String(given.get("path")), table: String(given.get("table")) };
  };
  function submit(event: FormEvent<HTMLFormElement>): void {
    event.preventDefault();
    onRun({ ...chosen(), fromStart: new FormData(event.currentTarget).get("fromStart") !== null });
  }
  return (
    <Dialog
      open
      title="Run a migration"
      text="The server runs it in batches, even if you leave this page. A stopped migration resumes where it stopped."
      onClose={onClose}
      footer={
        <>
          <Button
            disabled={mutations.length === 0}
            onClick={() =>
              void attempt(async () => {
                setTried(null);
                const { documents, changed } = await tryOut(chosen());
                setTried(
                  `Dry run on ${count(documents)} documents: ${
                    count(changed)
                  } would change. Nothing was stored.`,
                );
              })}
          >
            Dry run
          </Button>
          <Button type="submit" form="migration" tone="accent" disabled={mutations.length === 0}>Run</Button>
        </>
      }
    >
      {mutations.length === 0
        ? <Empty title="The app has no internal mutation that takes an ID" />
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
            <CheckField label="Start from the first document" name="fromStart" />
            {tried !== null && <p role="status">{tried}</p>}
          </form>
        )}
    </Dialog>
  );
}
