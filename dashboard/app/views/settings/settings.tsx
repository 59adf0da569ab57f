/** What administrators set while the server runs: each option with where its value comes from; a flag or a variable wins. */
import { type FormEvent, useEffect, useState } from "react";
import { useAction, useQuery } from "syncline/react";
import type { SettingView } from "../../../../mod/ops/admin/isolate_functions/settings.ts";
import { adminSession } from "../../server/admin_session.ts";
import { api } from "../../server/api.ts";
import { href, useRoute } from "../../shell/route.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { attempt, note } from "../../ui/notes.tsx";
import { Card, Empty, Loading, View } from "../../ui/view.tsx";
import { type Group, grouped, labelOf } from "./groups.ts";
import { mailOf, PreviewMail } from "./preview_mail.tsx";
import { TestMail } from "./test_mail.tsx";
import { TryPlaces } from "./try_places.tsx";

export function Settings() {
  const { path: [, named] } = useRoute();
  const settings = useQuery(api.settings.list);
  const known = settings !== undefined;
  useEffect(() => {
    if (known && named !== undefined) document.getElementById(`setting-${named}`)?.focus();
  }, [known, named]);
  return (
    <View
      title="Settings"
      text="They count at once. What a flag or a variable of the server says counts more."
      actions={
        <a className="button" href={href(["audit"], { action: "_admin/settings:" })}>Who changed what</a>
      }
    >
      {settings === undefined && <Loading />}
      {settings?.length === 0 && <Empty title="This server has no settings" />}
      {grouped(settings ?? []).map((group) => <GroupForm key={group.title} group={group} />)}
    </View>
  );
}

function GroupForm({ group: { title, settings, test } }: { readonly group: Group }) {
  const set = useAction(api.settings.set);
  /** What was entered and is not stored; by name. */
  const [entered, setEntered] = useState<Readonly<Record<string, string>>>({});
  const [error, setError] = useState<{ readonly name: string | null; readonly text: string } | null>(null);
  const [busy, setBusy] = useState(false);
  const [testing, setTesting] = useState(false);

  async function store(changes: Record<string, string | null>): Promise<void> {
    setBusy(true);
    setError(null);
    try {
      const { overridden } = await set({ changes });
      setEntered((before) =>
        Object.fromEntries(Object.entries(before).filter(([name]) => !(name in changes)))
      );
      note(
        overridden.length === 0
          ? "The settings are stored and count."
          : `Stored, but a flag or a variable counts more: ${overridden.map(labelOf).join(", ")}.`,
      );
    } catch (failure) {
      const data = (failure as { readonly data?: { readonly name?: string | null } | null }).data;
      const text = failure instanceof Error ? failure.message : String(failure);
      setError({ name: data?.name ?? null, text });
    }
    setBusy(false);
  }

  function submit(event: FormEvent): void {
    event.preventDefault();
    void store({ ...entered });
  }

  const changed = Object.keys(entered).length;
  return (
    <Card
      title={title}
      actions={test === "mail"
        ? <Button onClick={() => setTesting(true)}>Send a test mail</Button>
        : test === "place"
        ? <TestPlace />
        : test === "places" && <Button onClick={() => setTesting(true)}>Try all places</Button>}
    >
      <form className="settings" aria-label={title} onSubmit={submit}>
        {settings.map((setting) => (
          <Setting
            key={setting.name}
            setting={setting}
            entered={entered[setting.name]}
            error={error?.name === setting.name ? error.text : null}
            onEnter={(text) => setEntered((before) => withEntry(before, setting, text))}
            onForget={() => void attempt(() => store({ [setting.name]: null }))}
          />
        ))}
        {error !== null && error.name === null && <p className="field-error" role="alert">{error.text}</p>}
        <div className="row end">
          {changed > 0 && (
            <Button
              onClick={() => {
                setEntered({});
                setError(null);
              }}
            >
              Discard
            </Button>
          )}
          <Button type="submit" tone="accent" disabled={busy || changed === 0}>Save</Button>
        </div>
      </form>
      {testing && test === "mail" && <TestMail onClose={() => setTesting(false)} />}
      {testing && test === "places" && <TryPlaces onClose={() => setTesting(false)} />}
    </Card>
  );
}

/** What is as it was stored needs no storing; an empty secret is none entered. */
function withEntry(
  before: Readonly<Record<string, string>>,
  { name, secret, text, kind }: SettingView,
  entry: string,
): Readonly<Record<string, string>> {
  const { [name]: _, ...others } = before;
  const same = secret ? entry === "" : entry === (text ?? (kind === "switch" ? "false" : ""));
  return same ? others : { ...others, [name]: entry };
}

/** Whether backups can be written where the settings say, tried out. */
function TestPlace() {
  const [busy, setBusy] = useState(false);
  async function test(): Promise<void> {
    setBusy(true);
    await attempt(async () => {
      const response = await adminSession.fetch("/api/admin/scheduled-backups/check", { method: "POST" });
      const { place, error } = await response.json() as {
        readonly place: string;
        readonly error: string | null;
      };
      if (error !== null) throw new Error(error);
      note(`${place} can be used.`);
    });
    setBusy(false);
  }
  return (
    <Button disabled={busy} onClick={() => void test()}>
      {busy ? "Testing…" : "Test the place of backups"}
    </Button>
  );
}

interface SettingProps {
  readonly setting: SettingView;
  readonly entered: string | undefined;
  readonly error: string | null;
  readonly onEnter: (text: string) => void;
  /** Goes back to the default. */
  readonly onForget: () => void;
}

function Setting({ setting, entered, error, onEnter, onForget }: SettingProps) {
  const {
    name,
    description,
    kind,
    secret,
    set,
    text,
    flag,
    env,
    given,
    defaultText,
    unreadable,
    encryptsSecrets,
  } = setting;
  const id = `setting-${name}`;
  const mail = mailOf(name);
  const [previewing, setPreviewing] = useState(false);
  const common = {
    id,
    "aria-describedby": `${id}-more`,
    "aria-invalid": error === null ? undefined : true,
  } as const;
  const placeholder = secret && set && !unreadable
    ? "stored; enter another to replace it"
    : defaultText === null
    ? "not set"
    : `by default: ${defaultText}`;
  const value = entered ?? (secret ? "" : text ?? "");
  return (
    <div className="setting">
      <div>
        <label htmlFor={id}>{labelOf(name)}</label>
        <p className="field-hint">{description}</p>
      </div>
      <div className="stack">
        <div className="row">
          {kind === "switch"
            ? (
              <select
                className="input fit"
                {...common}
                value={value === "" ? "" : value}
                onChange={(event) => onEnter(event.target.value)}
              >
                {!set && <option value="">{defaultText ?? "off"} (default)</option>}
                <option value="true">on</option>
                <option value="false">off</option>
              </select>
            )
            : kind === "long"
            ? (
              <textarea
                className="input grow"
                {...common}
                rows={value === "" ? 2 : Math.min(16, value.split("\n").length + 1)}
                spellCheck={false}
                value={value}
                placeholder={placeholder}
                onChange={(event) => onEnter(event.target.value)}
              />
            )
            : (
              <input
                className="input grow"
                {...common}
                type={secret ? "password" : "text"}
                autoComplete={secret ? "new-password" : "off"}
                spellCheck={false}
                value={value}
                placeholder={placeholder}
                onChange={(event) => onEnter(event.target.value)}
              />
            )}
          {mail !== null && (
            <Button
              aria-label={`Preview ${labelOf(name)}`}
              onClick={() => setPreviewing(true)}
            >
              Preview
            </Button>
          )}
          {mail !== null && previewing && (
            <PreviewMail
              kind={mail}
              text={entered}
              onClose={() => setPreviewing(false)}
            />
          )}
          {set && (
            <Button tone="plain" aria-label={`Forget ${labelOf(name)}`} onClick={onForget}>Forget</Button>
          )}
        </div>
        <div id={`${id}-more`} className="row quiet small">
          {error !== null && <p className="field-error" role="alert">{error}</p>}
          {unreadable && <Badge tone="bad">stored under another key of the server: enter it again</Badge>}
          {given !== null
            ? (
              <span>
                <Badge tone="warn">{given.by === "flag" ? flag : env} wins</Badge>{" "}
                {given.text !== null && <code>{given.text}</code>}
              </span>
            )
            : set
            ? (
              <span>
                <Badge tone="accent">set here</Badge> {defaultText !== null && `by default: ${defaultText}`}
              </span>
            )
            : null}
          {kind === "list" && <span>Several are separated by commas.</span>}
          {encryptsSecrets && (
            <span>
              What stands as <code>{'{"secret": "…"}'}</code> is stored encrypted.
            </span>
          )}
        </div>
      </div>
    </div>
  );
}
