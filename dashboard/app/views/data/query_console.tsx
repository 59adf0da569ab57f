/** Query console: runs a query written here at a snapshot, and shows what it read and which index would help. */
import { useState } from "react";
import { useAction } from "syncline/react";
import type { ConsoleRun } from "../../../../mod/ops/admin/query_console.ts";
import { api } from "../../server/api.ts";
import { Badge, Button } from "../../ui/controls.tsx";
import { count, countOf, duration } from "../../ui/format.tsx";
import { attempt } from "../../ui/toasts.tsx";
import { Card, Table } from "../../ui/view.tsx";
import { type Caller, RunAsField, signedOut, useRunAs } from "../../ui/run_as.tsx";
import { RunOutput } from "../../ui/run_output.tsx";

/** The text entered last, which is not stored: it may contain personal data. */
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
  async function start(): Promise<void> {
    if (busy || source.trim() === "") return;
    setBusy(true);
    await attempt(async () => setRun(await runQuery({ source, as })));
    setBusy(false);
  }
  return (
    <div className="stack console">
      <Card
        title="Query"
        actions={
          <Button tone="accent" title="Ctrl+Enter" busy={busy} onClick={() => void start()}>Run query</Button>
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
      {run !== null && <Result run={run} />}
    </div>
  );
}

function Result({ run: { result, logLines, ms, ts, use, reads } }: { readonly run: ConsoleRun }) {
  const advice = reads.flatMap(({ advice }) => advice ?? []);
  return (
    <Card
      title={
        <>
          {result.ok ? <Badge tone="good">success</Badge> : <Badge tone="bad">failed</Badge>}{" "}
          <span className="quiet">
            {duration(ms)}
            {use !== null && `, ${countOf(use.documentsRead, "document")} read`}
            {ts !== null && `, at commit ${count(ts)}`}
          </span>
        </>
      }
    >
      <div className="stack" role="status">
        {advice.map((text) => <p key={text} className="banner">{text}</p>)}
        {reads.length > 0 && (
          <div className="table-scroll" tabIndex={0} role="group" aria-label="Reads">
            <Table
              head={["Table", "Index", "Fields", "Filter", { number: "Runs" }, { number: "Read" }, {
                number: "Returned",
              }]}
            >
              {reads.map(({ table, index, fields, filtered, calls, documents, returned, scan }) => (
                <tr key={`${table} ${index} ${fields.join()}`}>
                  <td className="mono">{table}</td>
                  <td>
                    <span className="mono">{index}</span> {scan && <Badge tone="warn">scan</Badge>}
                  </td>
                  <td className="mono">{fields.join(", ") || "–"}</td>
                  <td className="mono">{filtered.join(", ") || "–"}</td>
                  <td className="number">{count(calls)}</td>
                  <td className="number">{count(documents)}</td>
                  <td className="number">{count(returned)}</td>
                </tr>
              ))}
            </Table>
          </div>
        )}
        <RunOutput result={result} logLines={logLines} />
      </div>
    </Card>
  );
}
