/** Audit log: administrators' actions, newest first. */
import { useQuery } from "syncline/react";
import { api } from "../../server/api.ts";
import { replace, useRoute } from "../../shell/route.ts";
import { SearchBar } from "../../ui/controls.tsx";
import { Card, Empty, Table, View } from "../../ui/view.tsx";
import { Time } from "../../ui/format.tsx";
import { ListEnd, useLiveList, useSettled } from "../../ui/use_request.tsx";
import { useCallerNames } from "../../ui/caller_names.ts";
import { AuditEntry, subjectOf } from "../../ui/audit_entry.tsx";

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

/** The server's limit. */
const TEXT_CHARS_MAX = 200;

export function Audit() {
  const { search } = useRoute();
  const adminId = search.get("admin") ?? "";
  const action = search.get("action") ?? "";
  const text = search.get("text") ?? "";
  const settled = useSettled(text.trim()).slice(0, TEXT_CHARS_MAX);
  const administrators = useQuery(api.administrators.list) ?? [];
  const list = useLiveList(api.audit.list, {
    ...(adminId !== "" && { adminId }),
    ...(action !== "" && { action }),
    ...(settled !== "" && { text: settled }),
  });
  const nameOf = useCallerNames(list.results.map(({ args }) => subjectOf(args)));
  const here = (changes: Record<string, string>) =>
    replace(["audit"], { admin: adminId, action, text, ...changes });
  return (
    <View
      title="Audit log"
      text="Changes made by administrators. Entries are kept for 400 days and contain no document data."
    >
      <SearchBar
        label="Search entries"
        placeholder="ID, email, IP address or text"
        value={text}
        onChange={(text) => here({ text })}
        choices={[
          {
            label: "Administrator",
            value: adminId,
            onChange: (admin) => here({ admin }),
            options: [
              ["", "All administrators"],
              ...administrators.map(({ adminId: id, email }) => [id, email] as const),
            ],
          },
          {
            label: "Subject",
            value: action,
            onChange: (action) => here({ action }),
            options: [["", "All subjects"], ...SUBJECTS],
          },
        ]}
      />
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
                  <AuditEntry row={row} nameOf={nameOf} />
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
