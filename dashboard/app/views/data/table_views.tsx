/** Menus of a table's grid: saved views, and the choice of columns. */
import { useState } from "react";
import { useMutation } from "syncline/react";
import type { TableOverview } from "../../../../mod/ops/admin/isolate_functions/data.ts";
import { api } from "../../server/api.ts";
import { go } from "../../shell/route.ts";
import { Button, CheckField, SelectField } from "../../ui/controls.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Table } from "../../ui/view.tsx";
import { type ArrangedColumns, columnsOf, FROZEN_MAX, widthOf, withWidth } from "./columns.ts";
import { SavedDialog } from "./saved_dialog.tsx";

export interface TableViewsProps {
  readonly table: TableOverview;
  readonly arranged: ArrangedColumns;
  /** Filters and order in the address. */
  readonly search: URLSearchParams;
}

/** Applies, saves and removes views: filters, order and columns under a name. */
export function TableViews({ table, arranged, search }: TableViewsProps) {
  const [managing, setManaging] = useState(false);
  const [choosing, setChoosing] = useState(false);
  return (
    <>
      <Button onClick={() => setChoosing(true)}>Columns</Button>
      <Menu
        label="Views"
        trigger="Views"
        items={[
          ...arranged.views.map(({ name, filters, ...columns }) => ({
            text: name,
            run() {
              arranged.arrange(columns);
              go(["data", table.name], Object.fromEntries(new URLSearchParams(filters)));
            },
          })),
          { text: "Save or remove views…", run: () => setManaging(true) },
        ]}
      />
      {choosing && <ColumnsDialog table={table} arranged={arranged} onClose={() => setChoosing(false)} />}
      {managing && (
        <SavedViews
          table={table}
          arranged={arranged}
          search={search}
          onClose={() => setManaging(false)}
        />
      )}
    </>
  );
}

function SavedViews(
  { table, arranged, search, onClose }: TableViewsProps & { readonly onClose: () => void },
) {
  const save = useMutation(api.views.save);
  const remove = useMutation(api.views.remove);
  const { columns: { hidden, widths, frozen }, views } = arranged;
  return (
    <SavedDialog
      what="view"
      text="A view has the filters, the order and the columns. Only you see yours."
      names={views.map(({ name }) => name)}
      onSave={(name) =>
        save({
          ...{ table: table.name, name, filters: search.toString(), frozen },
          ...{ hidden: [...hidden], widths: { ...widths } },
        })}
      onRemove={(name) => remove({ table: table.name, name })}
      onClose={onClose}
    />
  );
}

function ColumnsDialog({ table, arranged, onClose }: {
  readonly table: TableOverview;
  readonly arranged: ArrangedColumns;
  readonly onClose: () => void;
}) {
  const { columns, arrange, reset } = arranged;
  const { hidden, frozen } = columns;
  const all = columnsOf(table);
  const last = hidden.length >= all.length - 1;
  return (
    <Dialog
      open
      title={`Columns of ${table.name}`}
      text="Also drag the right edge of a column's name to resize it."
      onClose={onClose}
      footer={
        <>
          <Button onClick={reset}>Reset</Button>
          <span className="grow" />
          <Button tone="accent" onClick={onClose}>Done</Button>
        </>
      }
    >
      <SelectField
        label="Columns that stay while scrolling sideways"
        value={frozen}
        onChange={({ target }) => arrange({ ...columns, frozen: Number(target.value) })}
      >
        {Array.from(
          { length: FROZEN_MAX + 1 },
          (_, at) => (
            <option key={at} value={at}>{at === 0 ? "none" : `the first ${at === 1 ? "one" : at}`}</option>
          ),
        )}
      </SelectField>
      <Table head={["Column", { number: "Width" }]}>
        {all.map((name) => {
          const isHidden = hidden.includes(name);
          return (
            <tr key={name}>
              <td>
                <CheckField
                  label={name}
                  checked={!isHidden}
                  disabled={last && !isHidden}
                  onChange={() =>
                    arrange({
                      ...columns,
                      hidden: isHidden ? hidden.filter((other) => other !== name) : [...hidden, name],
                    })}
                />
              </td>
              <td className="number">
                <input
                  className="input column-width"
                  type="number"
                  min={48}
                  max={2_000}
                  step={8}
                  aria-label={`Width of ${name} in pixels`}
                  // Entered widths are applied when complete.
                  key={widthOf(name, arranged)}
                  defaultValue={widthOf(name, arranged)}
                  onBlur={({ target }) => {
                    const width = Number(target.value);
                    if (width > 0 && width !== widthOf(name, arranged)) {
                      arrange(withWidth(columns, name, width));
                    }
                  }}
                />
              </td>
            </tr>
          );
        })}
      </Table>
    </Dialog>
  );
}
