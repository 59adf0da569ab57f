/** The result or error of a run, and its log lines. */
import type { RunResult } from "../../../mod/ops/admin/run_function.ts";

export function RunOutput({ result, logLines }: RunResult) {
  return (
    <>
      <pre className="result" tabIndex={0} aria-label="Result">
        {result.ok
          ? JSON.stringify(result.value, null, 2)
          : `${result.error.message}\n${result.error.stack ?? ""}${
            result.error.data === null ? "" : `\n${JSON.stringify(result.error.data, null, 2)}`
          }`}
      </pre>
      {logLines.length > 0 && (
        <>
          <h2>Log lines</h2>
          <pre className="result" tabIndex={0} aria-label="Log lines">{logLines.join("\n")}</pre>
        </>
      )}
    </>
  );
}
