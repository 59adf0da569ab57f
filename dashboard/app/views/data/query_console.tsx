/** Query console: runs a query written here at a snapshot, and shows what it read and which index would help. */
import { useState } from "react";
import { useAction, useMutation, useQuery } from "syncline/react";
import type { ConsoleRun } from "../../../../mod/ops/admin/query_console.ts";
import { api } from "../../server/api.ts";
import { useRefusal } from "../../ui/access.tsx";
import { Button } from "../../ui/controls.tsx";
import { Menu } from "../../ui/menu.tsx";
import { attempt, showToast } from "../../ui/toasts.tsx";
import { Card } from "../../ui/view.tsx";
import { type Caller, RunAsField, signedOut, useRunAs } from "../../ui/run_as.tsx";
import { TracedRun } from "../../ui/traced_run.tsx";
import { SavedDialog } from "./saved_dialog.tsx";

/** The text entered last, which is only stored on request: it may contain personal data. */
let entered: string | null = null;

function exampleFor(table: string): string {
  return `async (ctx) => {\n  return await ctx.db.query(${
    JSON.stringify(table)
  }).order("desc").take(10);\n}\n`;
}

export function QueryConsole({ table }: { readonly table: string }) {
  const runQuery = useAction(api.functions.console);
  const [source, setSource] = useState(() => entered ?? exampleFor(table));
  const [caller, setCaller] = useState<Caller>(signedOut);
  const as = useRunAs(caller);
  const [run, setRun] = useState<ConsoleRun | null>(null);
  const [busy, setBusy] = useState(false);
  const refusal = useRefusal("editor");
  /** Replaces the text. The user can undo it. */
  function choose(query: string): void {
    const before = entered;
    setSource(entered = query);
    if (before === null || before === query) return;
    const back = () => setSource(entered = before);
    showToast("Query replaced.", { action: { text: "Undo", run: back } });
  }
  async function start(): Promise<void> {
    if (refusal !== undefined || busy || source.trim() === "") return;
    setBusy(true);
    await attempt(async () => setRun(await runQuery({ source, as })));
    setBusy(false);
  }
  return (
    <div className="stack console">
      <Card
        title="Query"
        actions={
          <>
            <SavedQueries source={source} onChoose={choose} />
            <Button
              tone="accent"
              needs="editor"
              title="Ctrl+Enter"
              busy={busy}
              onClick={() => void start()}
            >
              Run query
            </Button>
          </>
        }
      >
        <div className="stack">
          <textarea
            className="input mono"
            aria-label="Query function"
            rows={10}
            spellCheck={false}
            autoCapitalize="off"
            value={source}
            onChange={({ target }) => setSource(entered = target.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
              event.preventDefault();
              void start();
            }}
          />
          <p className="quiet">
            A function in TypeScript with the <code>ctx</code>{" "}
            of a query, or a module that exports one as its default. It runs at a snapshot in a process of its
            own and cannot write. <code>Ctrl+Enter</code> runs it.
          </p>
          <RunAsField caller={caller} onChange={setCaller} />
        </div>
      </Card>
      {run !== null && <TracedRun run={run} />}
    </div>
  );
}

/** Saved queries are views of no table. */
const NO_TABLE = "";

function SavedQueries({ source, onChoose }: {
  readonly source: string;
  readonly onChoose: (query: string) => void;
}) {
  const saved = useQuery(api.views.list, { table: NO_TABLE }) ?? [];
  const save = useMutation(api.views.saveQuery);
  const remove = useMutation(api.views.remove);
  const [managing, setManaging] = useState(false);
  return (
    <>
      <Menu
        label="Queries"
        trigger="Queries"
        items={[
          ...saved.map(({ name, query = "" }) => ({ text: name, run: () => onChoose(query) })),
          { text: "Save or remove queries…", needs: "editor", run: () => setManaging(true) },
        ]}
      />
      {managing && (
        <SavedDialog
          what="query"
          text="Saves the text above. Only you see your queries."
          names={saved.map(({ name }) => name)}
          onSave={(name) => save({ name, query: source })}
          onRemove={(name) => remove({ table: NO_TABLE, name })}
          onClose={() => setManaging(false)}
        />
      )}
    </>
  );
}
