/** One function: arguments, a run under any identity with its details, and a query's live result. */
import { lazy, Suspense, useState } from "react";
import { useAction } from "syncline/react";
import type { FunctionFacts } from "../../../../mod/functions/api/system_context.ts";
import type { ConsoleRun } from "../../../../mod/ops/admin/query_console.ts";
import type { FunctionRun } from "../../../../mod/ops/admin/run_function.ts";
import type { LoggedRun } from "../../../../mod/ops/log/run_record.ts";
import { api } from "../../server/api.ts";
import { parseJson } from "../../server/json_text.ts";
import { href } from "../../shell/route.ts";
import { Badge, Button } from "../../ui/controls.tsx";
import { count, duration, Time } from "../../ui/format.tsx";
import { fieldsOf, FormTabs, SchemaForm } from "../../ui/schema_form.tsx";
import { attempt } from "../../ui/toasts.tsx";
import { Card, Loading, Table } from "../../ui/view.tsx";
import { type PastRun, useArguments } from "./arguments.ts";
import { DocComment } from "./doc_comment.tsx";
import { LiveResult, type Watched } from "./live_result.tsx";
import { FunctionPerformance, KindBadge } from "./performance.tsx";
import { RunOutput } from "../../ui/run_output.tsx";
import { FunctionReference } from "./reference.tsx";
import { TracedRun } from "../../ui/traced_run.tsx";
import { type Caller, RunAsField, signedOut, useRunAs } from "../../ui/run_as.tsx";

const JsonEditor = lazy(async () => ({ default: (await import("../../ui/json_editor.tsx")).JsonEditor }));

export function FunctionPage({ fact }: { readonly fact: FunctionFacts }) {
  const run = useAction(api.functions.run);
  const runTraced = useAction(api.functions.console);
  const { text, setText, recorded, runs, addRun } = useArguments(fact);
  const [form, setForm] = useState(fact.args !== null && "properties" in fact.args);
  const [caller, setCaller] = useState<Caller>(signedOut);
  const as = useRunAs(caller);
  const [result, setResult] = useState<FunctionRun | null>(null);
  const [traced, setTraced] = useState<ConsoleRun | null>(null);
  const [busy, setBusy] = useState(false);
  const [live, setLive] = useState<Watched | null>(null);
  /** Number of texts loaded into the form, whose fields with JSON keep their own text. */
  const [loads, setLoads] = useState(0);

  const args = (): Record<string, unknown> => parseJson(text) as Record<string, unknown>;

  const watched = (): Watched => ({
    path: fact.path,
    args: args(),
    internal: fact.visibility === "internal",
    as,
  });

  async function start(text: string): Promise<void> {
    setBusy(true);
    await attempt(async () => {
      const ran = await run({ path: fact.path, args: parseJson(text) as Record<string, unknown>, as });
      setResult(ran);
      setTraced(null);
      addRun({ at: Date.now(), text, ok: ran.result.ok });
    });
    setBusy(false);
  }

  /** Runs the query in a separate process that records its reads. */
  async function explain(): Promise<void> {
    setBusy(true);
    await attempt(async () => {
      setTraced(await runTraced({ path: fact.path, args: args(), as }));
      setResult(null);
    });
    setBusy(false);
  }

  function runAgain(text: string): void {
    setText(text);
    setLoads((before) => before + 1);
    void start(text);
  }

  return (
    <>
      <Card
        title={
          <>
            <span className="mono">{fact.path}</span> <KindBadge kind={fact.kind} />{" "}
            {fact.visibility === "internal" && <Badge>internal</Badge>}
          </>
        }
        actions={
          <>
            {fact.kind === "query" && (
              <Button
                // Internal queries run as the administrator, and a user's session is created.
                needs={fact.visibility === "internal" || caller.kind === "user" ? "editor" : undefined}
                onClick={() => void attempt(() => Promise.resolve(setLive(live === null ? watched() : null)))}
              >
                {live === null ? "Watch live" : "Stop watching"}
              </Button>
            )}
            {fact.kind === "query" && (
              <Button
                needs="editor"
                title="Runs the query, and shows what it reads and which index would help"
                disabled={busy}
                onClick={() => void explain()}
              >
                Explain
              </Button>
            )}
            <Button tone="accent" needs="editor" disabled={busy} onClick={() => void start(text)}>
              {busy ? "Running…" : "Run"}
            </Button>
          </>
        }
      >
        <div className="stack">
          {fact.doc !== null && <DocComment text={fact.doc} />}
          {fact.args !== null && (
            <FormTabs label="Argument editor" form={form} fields={fieldsOf(text)} onForm={setForm} />
          )}
          {form && fact.args !== null
            ? (
              <SchemaForm
                key={`${loads} ${recorded?.id ?? ""}`}
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
          {recorded !== undefined && <RecordedArguments run={recorded} />}
          <RunAsField caller={caller} onChange={setCaller} />
        </div>
      </Card>
      {live !== null && <LiveResult watched={live} />}
      {result !== null && <Result run={result} />}
      {traced !== null && <TracedRun run={traced} />}
      {runs.length > 0 && <RecentRuns runs={runs} busy={busy} onRun={runAgain} />}
      <FunctionPerformance path={fact.path} />
      <FunctionReference fact={fact} fields={fieldsOf(text)} />
    </>
  );
}

/** Where the arguments of a query come from. */
function RecordedArguments({ run }: { readonly run: LoggedRun | null }) {
  if (run === null) {
    return (
      <p className="quiet">
        The arguments of earlier runs were not recorded. Turn on{" "}
        <a href={href(["settings", "logArgs"])}>Log arguments</a> to begin with those of a slow run here.
      </p>
    );
  }
  return (
    <p className="quiet">
      These are the arguments of{" "}
      <a href={href(["logs"], { function: run.function, run: String(run.id) })}>
        the slowest recent run
      </a>, which took {duration(run.durationMs)}.
    </p>
  );
}

/** Runs started in this page. */
function RecentRuns({ runs, busy, onRun }: {
  readonly runs: readonly PastRun[];
  readonly busy: boolean;
  readonly onRun: (text: string) => void;
}) {
  return (
    <Card title="Your recent runs" flush>
      <Table head={["Time", "Arguments", "Result"]} actions>
        {runs.map(({ id, at, text, ok }) => (
          <tr key={id}>
            <td>
              <Time at={at} as="clock" />
            </td>
            <td className="mono args" title={text}>{compact(text)}</td>
            <td>{ok ? <Badge tone="good">success</Badge> : <Badge tone="bad">failed</Badge>}</td>
            <td className="number">
              <Button needs="editor" disabled={busy} onClick={() => onRun(text)}>Run again</Button>
            </td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

function compact(text: string): string {
  return JSON.stringify(JSON.parse(text));
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
        <RunOutput result={result} logLines={logLines} />
        {reads !== null && reads.length > 0 && (
          <p className="quiet">
            Read {reads.map(({ table, index }) => `${table} ${index}`).join(", ")}.
          </p>
        )}
      </div>
    </Card>
  );
}
