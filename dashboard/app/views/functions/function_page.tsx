/** One function: arguments, a run under any identity with its details, and a query's live result. */
import { lazy, Suspense, useState } from "react";
import { useAction } from "syncline/react";
import type { FunctionFacts } from "../../../../mod/functions/api/system_context.ts";
import type { FunctionRun } from "../../../../mod/ops/admin/run_function.ts";
import { api } from "../../server/api.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { attempt } from "../../ui/toasts.tsx";
import { Table } from "../../ui/table.tsx";
import { count, duration } from "../../ui/format.tsx";
import { Card, Loading } from "../../ui/view.tsx";
import { type Fields, SchemaForm } from "../../ui/schema_form.tsx";
import { exampleOf } from "../../server/json_schema.ts";
import { FunctionPerformance } from "./performance.tsx";
import { LiveResult, type Watched } from "./live_result.tsx";
import { type Caller, RunAsField, useRunAs } from "./run_as.tsx";

const JsonEditor = lazy(async () => ({ default: (await import("../../ui/json_editor.tsx")).JsonEditor }));

export function FunctionPage({ fact }: { readonly fact: FunctionFacts }) {
  const run = useAction(api.functions.run);
  const [text, setText] = useState(() => JSON.stringify(exampleOf(fact.args) ?? {}, null, 2));
  const [form, setForm] = useState(fact.args !== null && "properties" in fact.args);
  const [caller, setCaller] = useState<Caller>({ kind: "nobody", user: "" });
  const as = useRunAs(caller);
  const [result, setResult] = useState<FunctionRun | null>(null);
  const [busy, setBusy] = useState(false);
  const [live, setLive] = useState<Watched | null>(null);

  const args = (): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>;

  const watched = (): Watched => ({
    path: fact.path,
    args: args(),
    internal: fact.visibility === "internal",
    as,
  });

  async function start(): Promise<void> {
    setBusy(true);
    await attempt(async () => {
      setResult(await run({ path: fact.path, args: args(), as }));
    });
    setBusy(false);
  }

  return (
    <>
      <Card
        title={
          <>
            <span className="mono">{fact.path}</span> <Badge>{fact.kind}</Badge>{" "}
            {fact.visibility === "internal" && <Badge>internal</Badge>}
          </>
        }
        actions={
          <>
            {fact.kind === "query" && (
              <Button
                onClick={() => void attempt(() => Promise.resolve(setLive(live === null ? watched() : null)))}
              >
                {live === null ? "Watch live" : "Stop watching"}
              </Button>
            )}
            <Button tone="accent" disabled={busy} onClick={() => void start()}>
              {busy ? "Running…" : "Run"}
            </Button>
          </>
        }
      >
        <div className="stack">
          {fact.args !== null && <Tabs form={form} fields={fieldsOf(text)} onForm={setForm} />}
          {form && fact.args !== null
            ? (
              <SchemaForm
                schema={fact.args}
                value={fieldsOf(text) ?? {}}
                onChange={(fields) => setText(JSON.stringify(fields, null, 2))}
              />
            )
            : (
              <Suspense fallback={<Loading />}>
                <JsonEditor label="Arguments" value={text} schema={fact.args} onChange={setText} />
              </Suspense>
            )}
          <RunAsField caller={caller} onChange={setCaller} />
        </div>
      </Card>
      {live !== null && <LiveResult watched={live} />}
      {result !== null && <Result run={result} />}
      <FunctionPerformance path={fact.path} />
    </>
  );
}

/** Parses arguments for the form; `null` unless the text is a JSON object. */
function fieldsOf(text: string): Fields | null {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value as Fields : null;
  } catch {
    return null;
  }
}

function Tabs({ form, fields, onForm }: {
  readonly form: boolean;
  readonly fields: Fields | null;
  readonly onForm: (form: boolean) => void;
}) {
  return (
    <div>
      <div className="tabs" role="group" aria-label="Argument editor">
        <button
          type="button"
          aria-pressed={form}
          // Switching would discard text that is not an object.
          disabled={fields === null}
          onClick={() => onForm(true)}
        >
          Form
        </button>
        <button type="button" aria-pressed={!form} onClick={() => onForm(false)}>JSON</button>
      </div>
    </div>
  );
}

function Result({ run: { result, logLines, ms, ts, reads } }: { readonly run: FunctionRun }) {
  return (
    <Card
      title={
        <>
          {result.ok ? <Badge tone="good">success</Badge> : <Badge tone="bad">{result.error.kind}</Badge>}
          {" "}
          <span className="quiet">{duration(ms)}{ts === null ? "" : `, at commit ${count(ts)}`}</span>
        </>
      }
    >
      <div className="stack">
        <pre className="result">
          {result.ok
            ? JSON.stringify(result.value, null, 2)
            : `${result.error.message}\n${result.error.stack ?? ""}${
              result.error.data === null ? "" : `\n${JSON.stringify(result.error.data, null, 2)}`
            }`}
        </pre>
        {logLines.length > 0 && (
          <>
            <h2>Log lines</h2>
            <pre className="result">{logLines.join("\n")}</pre>
          </>
        )}
        {reads !== null && reads.length > 0 && (
          <>
            <h2>Reads</h2>
            <Table head={["Table", "Index", { number: "Lookups" }, { number: "Ranges" }]}>
              {reads.map(({ table, index, points, ranges }) => (
                <tr key={`${table} ${index}`}>
                  <td>{table}</td>
                  <td>{index}</td>
                  <td className="number">{count(points)}</td>
                  <td className="number">{count(ranges)}</td>
                </tr>
              ))}
            </Table>
          </>
        )}
      </div>
    </Card>
  );
}
