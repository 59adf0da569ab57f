/** Dialog that restores one table to an earlier state, which is chosen there: a point in time or a backup. */
import { useState } from "react";
import type { Backup, ScheduledBackups } from "../../server/stats.ts";
import { href } from "../../shell/route.ts";
import { SelectField, TextField } from "../../ui/controls.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { pickerText, timeText } from "../../ui/format.tsx";
import { useRequest } from "../../ui/use_request.tsx";
import { Empty, Loading } from "../../ui/view.tsx";
import { CopyTable } from "./copy_table.tsx";
import { type GenerationRange, pointAt, spanOf } from "./restorable.ts";
import { backupPath, scheduledPath } from "./scheduled.tsx";

/** Value of the field for a point in time. The others are paths of backups. */
const POINT = "point";

export function RestoreTable({ table, backups: newestBackups, ranges: newestRanges, onClose }: {
  readonly table: string;
  readonly backups: readonly Backup[];
  readonly ranges: readonly GenerationRange[];
  readonly onClose: () => void;
}) {
  const scheduled = useRequest<ScheduledBackups>("/api/admin/scheduled-backups");
  // The offered states stay the same while the dialog is open.
  const [backups] = useState(newestBackups);
  const [ranges] = useState(newestRanges);
  const { from, to } = spanOf(ranges);
  const [state, setState] = useState<string | null>(null);
  const title = `Restore ${table} to an earlier state`;
  const stored = [
    ...backups.filter(({ error }) => error === undefined)
      .map(({ name, createdAt }) => ({ name, createdAt, path: backupPath(name) })),
    ...(scheduled.value !== undefined && scheduled.value.place !== null ? scheduled.value.backups : [])
      .map(({ name, createdAt }) => ({ name, createdAt, path: scheduledPath(name) })),
  ].toSorted((a, b) => Date.parse(b.createdAt) - Date.parse(a.createdAt));
  const choices: readonly (readonly [value: string, text: string])[] = [
    ...(ranges.length === 0 ? [] : [[POINT, `Any time since ${timeText(from)}`] as const]),
    ...stored.map(({ name, createdAt, path }) =>
      [path, `Backup of ${timeText(Date.parse(createdAt))}, ${name}`] as const
    ),
  ];
  const chosen = state ?? choices[0]?.[0];
  // The first choice must not change while the dialog is open.
  const isLoading = scheduled.value === undefined && scheduled.error === null && ranges.length === 0;
  if (chosen === undefined || isLoading) {
    return (
      <Dialog open title={title} onClose={onClose}>
        {isLoading ? <Loading /> : (
          <Empty title="No earlier state is stored">
            <p>
              There are no backups and no points in time. Schedule backups in{" "}
              <a href={href(["settings", "backups"])}>Settings</a>.
            </p>
          </Empty>
        )}
      </Dialog>
    );
  }
  return (
    <CopyTable
      title={title}
      button="Restore table"
      table={table}
      sourceOf={(form) => {
        if (chosen !== POINT) return { backup: chosen };
        const time = new Date(String(form.get("time"))).getTime();
        // The field has no fractions of a second, and omits seconds that are 0.
        return pointAt(ranges, time === new Date(pickerText(to)).getTime() ? to : time);
      }}
      onClose={onClose}
    >
      <SelectField
        label="Earlier state"
        autoFocus
        value={chosen}
        onChange={(event) => setState(event.target.value)}
      >
        {choices.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
      </SelectField>
      {chosen === POINT && (
        <TextField
          label="Time"
          name="time"
          type="datetime-local"
          step="1"
          required
          min={pickerText(from)}
          max={pickerText(to)}
          defaultValue={pickerText(to)}
        />
      )}
    </CopyTable>
  );
}
