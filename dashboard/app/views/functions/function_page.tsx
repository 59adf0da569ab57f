/** One function: arguments, a run under any identity with its details, and a query's live result. */
import { lazy, Suspense, useEffect, useId, useState } from "react";
import { functionReference, SynclineClient } from "syncline/client";
import { useAction, useQuery, useSyncline } from "syncline/react";
import type { FunctionFacts } from "../../../../mod/functions/api/system_context.ts";
import type { FunctionRun } from "../../../../mod/ops/admin/run_function.ts";
import { adminSession } from "../../server/admin_session.ts";
import { api, type RunAs } from "../../server/api.ts";
import { exampleOf } from "../../server/json_schema.ts";
import { parseJson } from "../../server/json_text.ts";
import { Badge, Button } from "../../ui/controls.tsx";
import { count, countOf, duration } from "../../ui/format.tsx";
import { fieldsOf, FormTabs, SchemaForm } from "../../ui/schema_form.tsx";
import { attempt } from "../../ui/toasts.tsx";
import { Card, Loading, Table } from "../../ui/view.tsx";
import { FunctionPerformance } from "./performance.tsx";

interface IdentityClient {
  readonly client: SynclineClient;
  readonly end: () => Promise<void>;
}

/**
 * Opens a client for the identity. For a user it creates a session, which the user's details show as an impersonation.
 *
 * @param onEnded Called when that session has ended.
 */
async function openClientAs(
  as: Exclude<RunAs, { readonly adminId: string }>,
  onEnded: () => void,
): Promise<IdentityClient> {
  const client = new SynclineClient(location.origin);
  if (as === null) {
    return {
      client,
      end() {
        client.close();
        return Promise.resolve();
      },
    };
  }
  const response = await adminSession.fetch("/api/admin/impersonate", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ userId: as.userId }),
  });
  const { accessToken } = await response.json() as { readonly accessToken: string };
  // Without its token the client would continue signed out.
  client.setAuth(() => Promise.resolve(accessToken), (isAuthenticated) => {
    if (isAuthenticated) return;
    onEnded();
    client.close();
  });
  return {
    client,
    async end() {
      client.close();
      await fetch("/api/auth/signout", {
        method: "POST",
        headers: { "Content-Type": "application/json", Authorization: `Bearer ${accessToken}` },
        body: "{}",
      });
    },
  };
}

interface Watched {
  readonly path: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly internal: boolean;
  /** Run identity. Internal queries always run as the administrator. */
  readonly as: RunAs;
}

/** Live result of a query under any identity. */
function LiveResult({ watched }: { readonly watched: Watched }) {
  const own = useSyncline();
  const [shown, setShown] = useState<{ readonly text: string; readonly failed: boolean } | null>(null);
  const [changes, setChanges] = useState(0);
  useEffect(() => {
    const show = (text: string, failed: boolean) => {
      setShown({ text, failed });
      setChanges((before) => before + 1);
    };
    return watch(own, {
      watched,
      onValue: (value) => show(JSON.stringify(value, null, 2) ?? "", false),
      onError: (error) => show(error.message, true),
    });
  }, [own, watched]);
  return (
    <Card
      title={
        <>
          Live <Badge tone={shown?.failed ? "bad" : "good"}>{countOf(changes, "result")}</Badge>
        </>
      }
    >
      {watched.internal && (
        <p className="quiet">Internal queries run as you, because clients cannot call them.</p>
      )}
      <pre className="result" aria-live="polite">{shown?.text ?? "Waiting for the first result…"}</pre>
    </Card>
  );
}

interface Watching {
  readonly watched: Watched;
  readonly onValue: (value: unknown) => void;
  readonly onError: (error: Error) => void;
}

/** Subscribes, and returns a function that unsubscribes. */
function watch(
  own: SynclineClient,
  { watched: { path, args, internal, as }, onValue, onError }: Watching,
): () => void {
  if (internal) return own.subscribe(api.functions.watch, { path, args }, onValue, onError);
  const query = functionReference<"query", Record<string, unknown>, unknown>(path);
  if (as !== null && "adminId" in as) return own.subscribe(query, args, onValue, onError);
  let gone = false;
  const ended = () => {
    if (!gone) onError(new Error("Session ended"));
    gone = true;
  };
  // Closing the client also fails its subscriptions; keep showing the original reason.
  const failed = (error: Error) => gone || onError(error);
  const watcher = openClientAs(as, ended);
  watcher.then(({ client }) => gone || client.subscribe(query, args, onValue, failed), failed);
  return () => {
    gone = true;
    // A session that could not be ended expires soon.
    watcher.then(({ end }) => end()).catch(() => {});
  };
}

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

export function FunctionPage({ fact }: { readonly fact: FunctionFacts }) {
  const run = useAction(api.functions.run);
  const [text, setText] = useState(() => JSON.stringify(exampleOf(fact.args) ?? {}, null, 2));
  const [form, setForm] = useState(fact.args !== null && "properties" in fact.args);
  const [caller, setCaller] = useState<Caller>({ kind: "nobody", user: "" });
  const as = useRunAs(caller);
  const [result, setResult] = useState<FunctionRun | null>(null);
  const [busy, setBusy] = useState(false);
  const [live, setLive] = useState<Watched | null>(null);

  const args = (): Record<string, unknown> => parseJson(text) as Record<string, unknown>;

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
          {fact.args !== null && (
            <FormTabs label="Argument editor" form={form} fields={fieldsOf(text)} onForm={setForm} />
          )}
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
