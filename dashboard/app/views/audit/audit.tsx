/** Audit log: administrators' actions, newest first. */
import { Fragment } from "react";
import { useQuery } from "syncline/react";
import type { AdminDoc } from "../../../../mod/ops/admin/tables.ts";
import { api } from "../../server/api.ts";
import { replace, useRoute } from "../../shell/route.ts";
import { Badge, ChoiceField } from "../../ui/controls.tsx";
import { Card, Empty, Table, View } from "../../ui/view.tsx";
import { Time } from "../../ui/format.tsx";
import { ListEnd, useLiveList } from "../../ui/use_request.tsx";
import { useCallerNames } from "../../ui/caller_names.ts";
import { isInverted, labelOf, wordsOf } from "../../ui/setting_words.ts";
import { sentenceOf } from "./sentences.ts";

/** Prefixes of an entry's action, with their labels. */
const SUBJECTS = [
  ["_admin/settings:", "Settings"],
  ["_admin/users:", "Users"],
  ["_admin/administrators:", "Administrators"],
  ["_admin/data:", "Data"],
  ["_admin/functions:", "Functions"],
  ["_admin/files:", "Files"],
  ["_admin/schedule:", "Schedule"],
  ["_admin/migrations:", "Migrations"],
  ["_admin/env:", "Variables"],
  ["_admin/apiKeys:", "API keys"],
  ["_admin/alerts:", "Alerts"],
  ["mcp:", "Tools of agents"],
  ["PUT /api/admin/functions", "Deploys"],
  ["POST /api/admin/functions/rollback", "Rollbacks"],
  ["POST /api/admin/backups", "Backups"],
  ["POST /api/admin/restore", "Restores"],
  ["POST /api/admin/impersonate", "Sign-ins as a user"],
  ["POST /api/admin/import", "Imports"],
  ["GET /api/admin/export", "Exports"],
] as const;

export function Audit() {
  const { search } = useRoute();
  const adminId = search.get("admin") ?? "";
  const action = search.get("action") ?? "";
  const administrators = useQuery(api.administrators.list) ?? [];
  const list = useLiveList(api.audit.list, {
    ...(adminId !== "" && { adminId }),
    ...(action !== "" && { action }),
  });
  const nameOf = useCallerNames(list.results.map(({ args }) => subjectOf(args)));
  const here = (changes: Record<string, string>) =>
    replace(["audit"], { admin: adminId, action, ...changes });
  return (
    <View
      title="Audit log"
      text="Changes made by administrators. Entries are kept for 400 days and contain no document data."
    >
      <div className="row">
        <ChoiceField
          label="Administrator"
          value={adminId}
          onChange={(admin) => here({ admin })}
          options={[
            ["", "All administrators"],
            ...administrators.map(({ adminId: id, email }) => [id, email] as const),
          ]}
        />
        <ChoiceField
          label="Subject"
          value={action}
          onChange={(action) => here({ action })}
          options={[["", "All subjects"], ...SUBJECTS]}
        />
      </div>
      <Card flush>
        {list.results.length === 0 && list.status === "Exhausted" && <Empty title="No entries" />}
        {list.results.length > 0 && (
          <Table head={["Time", "Entry", "From"]} cards>
            {list.results.map((row) => (
              <tr key={row._id}>
                <td>
                  <Time at={row._creationTime} />
                </td>
                <td className="wide">
                  <Entry row={row} nameOf={nameOf} />
                </td>
                <td className="quiet" title={row.userAgent}>{row.address}</td>
              </tr>
            ))}
          </Table>
        )}
        <ListEnd list={list} />
      </Card>
    </View>
  );
}

type Row = AdminDoc<"_audit">;

/** A sentence, with the recorded action and arguments on request. */
function Entry({ row, nameOf }: { readonly row: Row; readonly nameOf: (caller: string | null) => string }) {
  const { verb, subject, to, rest = "" } = sentenceOf(row, nameOf);
  const by = row.args["by"];
  return (
    <>
      <p>
        <strong>{typeof by === "string" ? by : row.email || row.admin}</strong>{" "}
        {row.outcome === "ok" ? "" : "tried: "}
        {subject === undefined && to !== undefined ? <a href={to}>{verb}</a> : verb}
        {subject !== undefined && " "}
        {subject !== undefined &&
          (to === undefined ? <strong>{subject}</strong> : <a href={to}>{subject}</a>)}
        {rest}
        {row.outcome !== "ok" && (
          <>
            {" "}
            <Badge tone="bad">{row.outcome}</Badge>
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
function subjectOf(args: Row["args"]): string | null {
  const { userId } = args;
  return typeof userId === "string" ? `user:${userId}` : null;
}
