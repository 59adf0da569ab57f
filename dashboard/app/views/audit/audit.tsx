/** Audit log: administrators' actions, newest first. */
import { Fragment } from "react";
import { useQuery } from "syncline/react";
import { api } from "../../server/api.ts";
import { replace, useRoute } from "../../shell/route.ts";
import { Badge, ChoiceField } from "../../ui/controls.tsx";
import { Card, Empty, Table, View } from "../../ui/view.tsx";
import { Time } from "../../ui/format.tsx";
import { ListEnd, useLiveList } from "../../ui/use_request.tsx";

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
  ["_admin/deployKeys:", "Deploy keys"],
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
  const here = (changes: Record<string, string>) =>
    replace(["audit"], { admin: adminId, action, ...changes });
  return (
    <View
      title="Audit log"
      text="Actions of administrators. Entries are kept for 400 days and contain no document data."
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
          <Table head={["Time", "Administrator", "Action", "Details", "Outcome"]}>
            {list.results.map((row) => (
              <tr key={row._id}>
                <td>
                  <Time at={row._creationTime} />
                </td>
                <td title={[row.address, row.userAgent].filter(Boolean).join(", ")}>
                  {row.email || row.admin}
                  {row.address !== undefined && <div className="quiet small">{row.address}</div>}
                </td>
                <td className="mono">{row.action}</td>
                <td className="wide">
                  {row.changes === undefined ? <Args args={row.args} /> : <Changes changes={row.changes} />}
                </td>
                <td>
                  <Badge tone={row.outcome === "ok" ? "good" : "bad"}>{row.outcome}</Badge>
                </td>
              </tr>
            ))}
          </Table>
        )}
        <ListEnd list={list} />
      </Card>
    </View>
  );
}

function Args({ args }: { readonly args: Readonly<Record<string, unknown>> }) {
  const given = Object.entries(args);
  if (given.length === 0) return <span className="quiet">–</span>;
  return (
    <>
      {given.map(([name, value]) => (
        <Fragment key={name}>
          <span className="quiet">{name}</span> {String(value)}
          {"  "}
        </Fragment>
      ))}
    </>
  );
}

function Changes({ changes }: {
  readonly changes: readonly {
    readonly setting: string;
    readonly before?: unknown;
    readonly after?: unknown;
  }[];
}) {
  const text = (value: unknown) => value === null || value === undefined ? "not set" : String(value);
  return (
    <>
      {changes.map(({ setting, before, after }) => (
        <div key={setting}>
          <span className="quiet">{setting}</span> {text(before)} → {text(after)}
        </div>
      ))}
    </>
  );
}
