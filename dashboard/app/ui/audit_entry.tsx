/** An entry of the audit log as a sentence. */
import { Fragment } from "react";
import type { AdminDoc } from "../../../mod/ops/admin/tables.ts";
import { Badge } from "./controls.tsx";
import { isInverted, labelOf, wordsOf } from "./setting_words.ts";
import { sentenceOf } from "./audit_sentences.ts";

type AuditRow = AdminDoc<"_audit">;

/** A sentence, with the recorded action and arguments on request. */
export function AuditEntry(
  { row, nameOf }: { readonly row: AuditRow; readonly nameOf: (caller: string | null) => string },
) {
  const { verb, subject, to, rest = "" } = sentenceOf(row, nameOf);
  const by = row.args["by"];
  return (
    <>
      <p>
        <strong>{typeof by === "string" ? by : row.email || row.admin}</strong>{" "}
        {subject === undefined && to !== undefined ? <a href={to}>{verb}</a> : verb}
        {subject !== undefined && " "}
        {subject !== undefined &&
          (to === undefined ? <strong>{subject}</strong> : <a href={to}>{subject}</a>)}
        {rest}
        {row.outcome !== "ok" && (
          <>
            {" "}
            <Badge tone="bad">{row.outcome === "failed" ? "failed" : `failed: ${row.outcome}`}</Badge>
          </>
        )}
      </p>
      {row.changes !== undefined && <Changes changes={row.changes} />}
      <details className="small quiet">
        <summary>Details</summary>
        <span className="mono">{row.action}</span> <Args args={row.args} />
      </details>
    </>
  );
}

function Args({ args }: { readonly args: Readonly<Record<string, unknown>> }) {
  const given = Object.entries(args);
  if (given.length === 0) return <span className="quiet">–</span>;
  return (
    <>
      {given.map(([name, value]) => (
        <Fragment key={name}>
          <span className="quiet">{argumentLabel(name)}</span>{" "}
          {typeof value === "boolean" ? value ? "yes" : "no" : String(value)}
          {"  "}
        </Fragment>
      ))}
    </>
  );
}

const ARGUMENTS: Readonly<Record<string, string>> = {
  path: "Function",
  migrationId: "Migration ID",
  fromStart: "From the first document",
  onServer: "On the server",
  userId: "User ID",
  adminId: "Administrator ID",
};

function argumentLabel(name: string): string {
  return ARGUMENTS[name] ?? wordsOf(name);
}

function Changes({ changes }: {
  readonly changes: readonly {
    readonly setting: string;
    readonly before?: unknown;
    readonly after?: unknown;
  }[];
}) {
  const text = (setting: string, value: unknown) => {
    if (value === null || value === undefined) return "not set";
    const on = value === true || value === "true";
    if (!on && value !== false && value !== "false") return String(value);
    return on === isInverted(setting) ? "off" : "on";
  };
  return (
    <>
      {changes.map(({ setting, before, after }) => (
        <div key={setting}>
          <span className="quiet">{labelOf(setting)}</span> {text(setting, before)} → {text(setting, after)}
        </div>
      ))}
    </>
  );
}

/** The user that an entry is about, as the execution log names callers. */
export function subjectOf(args: AuditRow["args"]): string | null {
  const { userId } = args;
  return typeof userId === "string" ? `user:${userId}` : null;
}
