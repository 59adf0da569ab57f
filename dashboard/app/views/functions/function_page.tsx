/** One function: its arguments, a run as anyone with all that is known of it, and a query's live result. */
import { lazy, Suspense, useState } from "react";
import { useAction } from "syncline/react";
import type { FunctionFacts } from "../../../../mod/functions/api/system_context.ts";
import type { FunctionRun } from "../../../../mod/ops/admin/run_function.ts";
import { api, type RunAs } from "../../server/api.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { attempt } from "../../ui/notes.tsx";
import { count, duration } from "../../ui/texts.tsx";
import { Card, Loading } from "../../ui/view.tsx";
import { exampleOf } from "../data/json_schema.ts";
import { LiveResult } from "./live_result.tsx";

const JsonEditor = lazy(async () => ({ default: (await import("../../ui/json_editor.tsx")).JsonEditor }));

export function FunctionPage({ fact }: { readonly fact: FunctionFacts }) {
  const run = useAction(api.functions.run);
  const [text, setText] = useState(() => JSON.stringify(exampleOf(fact.args) ?? {}, null, 2));
  const [as, setAs] = useState("");
  const [result, setResult] = useState<FunctionRun | null>(null);
  const [busy, setBusy] = useState(false);
  const [live, setLive] = useState<Record<string, unknown> | null>(null);

  const args = (): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>;

  async function start(): Promise<void> {
    setBusy(true);
    await attempt(async () => {
      const who: RunAs = as.trim() === "" ? null : { userId: as.trim() };
      setResult(await run({ path: fact.path, args: args(), as: who }));
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
            {fact.kind === "query" && fact.visibility === "public" && (
              <Button
                onClick={() => void attempt(() => Promise.resolve(setLive(live === null ? args() : null)))}
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
          <Suspense fallback={<Loading />}>
            <JsonEditor label="Arguments" value={text} schema={fact.args} onChange={setText} />
          </Suspense>
          <label className="field">
            <span>As the user</span>
            <input
              className="input"
              value={as}
              placeholder="Id of a user; empty for nobody"
              onChange={(event) => setAs(event.target.value)}
            />
          </label>
        </div>
      </Card>
      {live !== null && <LiveResult path={fact.path} args={live} />}
      {result !== null && <Result run={result} />}
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
            <h2>What it read</h2>
            <table className="table">
              <thead>
                <tr>
                  <th>Table</th>
                  <th>Index</th>
                  <th className="number">Look-ups</th>
                  <th className="number">Ranges</th>
                </tr>
              </thead>
              <tbody>
                {reads.map(({ table, index, points, ranges }) => (
                  <tr key={`${table} ${index}`}>
                    <td>{table}</td>
                    <td>{index}</td>
                    <td className="number">{count(points)}</td>
                    <td className="number">{count(ranges)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </>
        )}
      </div>
    </Card>
  );
}
