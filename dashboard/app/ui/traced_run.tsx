/** Result of a traced query: its reads, with the index that would help, and its output. */
import type { ConsoleRun } from "../../../mod/ops/admin/query_console.ts";
import { Badge } from "./controls.tsx";
import { count, countOf, duration } from "./format.tsx";
import { RunOutput } from "./run_output.tsx";
import { Card, Table } from "./view.tsx";

export function TracedRun({ run: { result, logLines, ms, ts, use, reads } }: { readonly run: ConsoleRun }) {
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
              head={[
                "Table",
                "Index",
                { number: "Read" },
                { number: "Returned" },
                { number: "Runs" },
                "Fields",
                "Filter",
              ]}
            >
              {reads.map(({ table, index, fields, filtered, calls, documents, returned, scan }) => (
                <tr key={`${table} ${index} ${fields.join()}`}>
                  <td className="mono">{table}</td>
                  <td className="args">
                    <span className="mono">{index}</span> {scan && <Badge tone="warn">scan</Badge>}
                  </td>
                  <td className="number">{count(documents)}</td>
                  <td className="number">{count(returned)}</td>
                  <td className="number">{count(calls)}</td>
                  <td className="mono">{fields.join(", ") || "–"}</td>
                  <td className="mono">{filtered.join(", ") || "–"}</td>
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
