/** One function: arguments, a run under any identity with its details, and a query's live result. */
import { lazy, Suspense, useId, useState } from "react";
import { useAction, useQuery } from "syncline/react";
import type { FunctionFacts } from "../../../../mod/functions/api/system_context.ts";
import type { FunctionRun } from "../../../../mod/ops/admin/run_function.ts";
import { api, type RunAs } from "../../server/api.ts";
import { parseJson } from "../../server/json_text.ts";
import { Badge, Button } from "../../ui/controls.tsx";
import { count, duration, Time } from "../../ui/format.tsx";
import { fieldsOf, FormTabs, SchemaForm } from "../../ui/schema_form.tsx";
import { attempt } from "../../ui/toasts.tsx";
import { Card, Loading, Table } from "../../ui/view.tsx";
import { type PastRun, useArguments } from "./arguments.ts";
import { LiveResult, type Watched } from "./live_result.tsx";
import { FunctionPerformance } from "./performance.tsx";
import { FunctionReference } from "./reference.tsx";

interface Caller {
  readonly kind: "nobody" | "user" | "me";
  /** Email address or ID of the user. */
  readonly user: string;
}

const OFFERED = 20;

/** Selects the run identity of a function: signed out, a user found by email or name, or the administrator. */
function RunAsField({ caller, onChange }: {
  readonly caller: Caller;
  readonly onChange: (caller: Caller) => void;
}) {
  const id = useId();
  const users = useUsers(caller);
  return (
    <div className="row">
      <label htmlFor={id}>Run as</label>
      <select
        id={id}
        className="input fit"
        value={caller.kind}
        onChange={(event) => onChange({ ...caller, kind: event.target.value as Caller["kind"] })}
      >
        <option value="nobody">signed out</option>
        <option value="user">a user</option>
        <option value="me">me (administrator)</option>
      </select>
      {caller.kind === "user" && (
        <>
          <input
            className="input grow"
            aria-label="User"
            placeholder="Email, name or ID"
            list={`${id}-users`}
            value={caller.user}
            onChange={(event) => onChange({ ...caller, user: event.target.value })}
          />
          <datalist id={`${id}-users`}>
            {users.map(({ userId, email, name }) => (
              <option key={userId} value={email ?? userId}>{name ?? userId}</option>
            ))}
          </datalist>
        </>
      )}
    </div>
  );
}

function useUsers({ kind, user }: Caller) {
  const search = user.trim();
  const found = useQuery(
    api.users.list,
    kind !== "user" ? "skip" : {
      ...(search !== "" && { search }),
      paginationOpts: { numItems: OFFERED, cursor: null },
    },
  );
  return found?.page ?? [];
}

/** Returns the run identity. The input is an email address of a suggested user or a user ID. */
function useRunAs(caller: Caller): RunAs {
  const users = useUsers(caller);
  const me = useQuery(api.administrators.me);
  if (caller.kind === "me") return me ? { adminId: me.adminId } : null;
  if (caller.kind === "nobody" || caller.user.trim() === "") return null;
  const entered = caller.user.trim();
  return { userId: users.find(({ email }) => email === entered.toLowerCase())?.userId ?? entered };
}

const JsonEditor = lazy(async () => ({ default: (await import("../../ui/json_editor.tsx")).JsonEditor }));

const KIND_TONES = { query: "good", mutation: "accent", action: "warn" } as const;

export function KindBadge({ kind }: Pick<FunctionFacts, "kind">) {
  return <Badge tone={KIND_TONES[kind]}>{kind}</Badge>;
}

export function FunctionPage({ fact }: { readonly fact: FunctionFacts }) {
  const run = useAction(api.functions.run);
  const { text, setText, runs, addRun } = useArguments(fact);
  const [form, setForm] = useState(fact.args !== null && "properties" in fact.args);
  const [caller, setCaller] = useState<Caller>({ kind: "nobody", user: "" });
  const as = useRunAs(caller);
  const [result, setResult] = useState<FunctionRun | null>(null);
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
      addRun({ at: Date.now(), text, ok: ran.result.ok });
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
                onClick={() => void attempt(() => Promise.resolve(setLive(live === null ? watched() : null)))}
              >
                {live === null ? "Watch live" : "Stop watching"}
              </Button>
            )}
            <Button tone="accent" disabled={busy} onClick={() => void start(text)}>
              {busy ? "Running…" : "Run"}
            </Button>
          </>
        }
      >
        <div className="stack">
          {fact.args !== null && (
            <FormTabs label="Argument editor" form={form} fields={fieldsOf(text)} onForm={setForm} />
          )}
          {form && fact.args !== null
            ? (
              <SchemaForm
                key={loads}
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
      {runs.length > 0 && <RecentRuns runs={runs} busy={busy} onRun={runAgain} />}
      <FunctionPerformance path={fact.path} />
      <FunctionReference fact={fact} fields={fieldsOf(text)} />
    </>
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
            <td className="mono" title={text}>{compact(text)}</td>
            <td>{ok ? <Badge tone="good">success</Badge> : <Badge tone="bad">failed</Badge>}</td>
            <td className="number">
              <Button disabled={busy} onClick={() => onRun(text)}>Run again</Button>
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
