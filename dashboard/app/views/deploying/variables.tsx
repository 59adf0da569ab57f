/** Environment variables of actions (`ctx.env`). Values are hidden until requested. */
import { useEffect, useState } from "react";
import { useAction } from "syncline/react";
import type { VariableInfo } from "../../../../mod/ops/deploy/variables.ts";
import { api } from "../../server/api.ts";
import { useRefusal, useRole } from "../../ui/access.tsx";
import { Badge, Button, Icon, TextField } from "../../ui/controls.tsx";
import { FormDialog, useConfirm } from "../../ui/dialog.tsx";
import { Menu } from "../../ui/menu.tsx";
import { attempt, showToast } from "../../ui/toasts.tsx";
import { TableCard } from "../../ui/view.tsx";

export function Variables() {
  const list = useAction(api.env.list);
  const set = useAction(api.env.set);
  const { ask, dialog } = useConfirm();
  const [variables, setVariables] = useState<readonly VariableInfo[]>();
  const [shown, setShown] = useState<string | null>(null);
  /** The variable being edited; an empty name for a new one. */
  const [editing, setEditing] = useState<{ readonly name: string } | null>(null);
  const read = () => void attempt(async () => setVariables(await list({})));
  const refusal = useRefusal("owner");
  const isAllowed = useRole() !== undefined && refusal === undefined;
  useEffect(() => {
    if (isAllowed) read();
  }, [isAllowed]);

  async function store(name: string, value: string | null): Promise<void> {
    const { overridden } = await set({ changes: { [name]: value } });
    if (overridden.length > 0) {
      showToast(`${name} saved, but --env-file takes precedence.`);
    }
    read();
  }

  return (
    <>
      <TableCard
        title="Environment variables (ctx.env)"
        titleActions={
          <Button needs="owner" onClick={() => setEditing({ name: "" })}>
            <Icon name="plus" /> New variable
          </Button>
        }
        empty={refusal === undefined
          ? {
            title: "No environment variables",
            text: "Store API keys of services that actions call here. Values are encrypted.",
          }
          : { title: "Variables are hidden", text: "Only owners see them." }}
        head={["Name", "Value"]}
        actions
        rows={refusal === undefined ? variables : []}
        row={({ name, value, overridden }) => (
          <tr key={name}>
            <td className="mono">
              {name} {overridden && <Badge tone="warn">overridden by --env-file</Badge>}
            </td>
            <td className="mono wrap">
              {value === null
                ? <Badge tone="bad">must be entered again</Badge>
                : shown === name
                ? value
                : "••••••••"}
            </td>
            <td className="number">
              <Menu
                label={`More about ${name}`}
                items={[
                  {
                    text: shown === name ? "Hide value" : "Show value",
                    run: () => setShown(shown === name ? null : name),
                  },
                  { text: "Change…", run: () => setEditing({ name }) },
                  {
                    text: "Delete…",
                    tone: "bad",
                    run: () =>
                      ask({
                        title: `Delete ${name}?`,
                        text: "Actions started from now on no longer see it.",
                        button: "Delete variable",
                        done: `${name} deleted.`,
                        run: () => store(name, null),
                      }),
                  },
                ]}
              />
            </td>
          </tr>
        )}
      />
      {editing !== null && (
        <SetVariable
          name={editing.name}
          onStore={store}
          onClose={() => setEditing(null)}
        />
      )}
      {dialog}
    </>
  );
}

function SetVariable({ name: known, onStore, onClose }: {
  /** Empty for a new variable. */
  readonly name: string;
  readonly onStore: (name: string, value: string) => Promise<void>;
  readonly onClose: () => void;
}) {
  async function submit(form: FormData): Promise<void> {
    const name = known || String(form.get("name"));
    const done = `${name} saved. Actions started from now on see it.`;
    if (await attempt(() => onStore(name, String(form.get("value"))), done)) onClose();
  }
  return (
    <FormDialog
      title={known === "" ? "New variable" : `Change ${known}`}
      button="Save variable"
      onSubmit={submit}
      onClose={onClose}
    >
      {known === "" && (
        <TextField
          label="Name"
          name="name"
          required
          autoFocus
          pattern="[A-Za-z_][A-Za-z0-9_]{0,99}"
          hint="Letters, digits and _, such as MAIL_KEY."
        />
      )}
      <TextField label="Value" name="value" required autoFocus={known !== ""} autoComplete="off" />
    </FormDialog>
  );
}
