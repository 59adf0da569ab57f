/** Settings that administrators change at runtime. Flags and environment variables take precedence. */
import { type FormEvent, useEffect, useState } from "react";
import { useAction, useQuery } from "syncline/react";
import type { SettingView } from "../../../../mod/ops/admin/isolate_functions/settings.ts";
import { adminSession } from "../../server/admin_session.ts";
import { api, type MailKind } from "../../server/api.ts";
import { href, useRoute } from "../../shell/route.ts";
import { Badge, Button, TextField } from "../../ui/controls.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { attempt, showToast } from "../../ui/toasts.tsx";
import { Card, Empty, Loading, View } from "../../ui/view.tsx";
import { type Group, grouped, labelOf } from "./groups.ts";
import { TestLocations } from "./test_locations.tsx";

const KINDS: Readonly<Record<string, MailKind>> = {
  mailVerify: "verify",
  mailReset: "reset",
  mailMagic: "magic",
  mailChange: "change",
};

/** The mail whose template a setting holds, or `null`. */
const mailOf = (setting: string): MailKind | null => KINDS[setting] ?? null;

interface Mail {
  readonly subject: string;
  readonly text: string;
}

function PreviewMail({ kind, text, onClose }: {
  readonly kind: MailKind;
  /** Unsaved template; the active one if undefined. */
  readonly text: string | undefined;
  readonly onClose: () => void;
}) {
  const preview = useAction(api.settings.previewMail);
  const [mail, setMail] = useState<Mail | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    preview({ kind, ...(text !== undefined && text !== "" && { text }) }).then(
      setMail,
      (failure) => setError(failure instanceof Error ? failure.message : String(failure)),
    );
  }, [preview, kind, text]);
  return (
    <Dialog
      open
      form="large"
      title={mail?.subject ?? "Preview"}
      text="With sample values."
      onClose={onClose}
    >
      {mail === null && error === null && <Loading />}
      {mail !== null && <pre className="result">{mail.text}</pre>}
      {error !== null && <p className="field-error" role="alert">{error}</p>}
    </Dialog>
  );
}

function TestMail({ onClose }: { readonly onClose: () => void }) {
  const send = useAction(api.settings.testMail);
  const me = useQuery(api.administrators.me);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const to = String(new FormData(event.currentTarget).get("to"));
    setBusy(true);
    setError(null);
    try {
      await send({ to });
      showToast(`The mail server accepted the mail to ${to}.`);
      onClose();
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
      setBusy(false);
    }
  }
  return (
    <Dialog
      open
      title="Send a test mail"
      text="Uses the current mail settings."
      onClose={onClose}
      footer={
        <Button type="submit" form="test-mail" tone="accent" disabled={busy}>
          {busy ? "Sending…" : "Send"}
        </Button>
      }
    >
      <form id="test-mail" onSubmit={(event) => void submit(event)}>
        <TextField
          key={me?.email}
          label="To"
          name="to"
          type="email"
          required
          autoFocus
          defaultValue={me?.email}
          error={error}
        />
      </form>
    </Dialog>
  );
}

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
      text="Changes apply immediately. Flags and environment variables take precedence."
      actions={
        <a className="button" href={href(["audit"], { action: "_admin/settings:" })}>Change history</a>
      }
    >
      {settings === undefined && <Loading />}
      {settings?.length === 0 && <Empty title="No settings" />}
      {grouped(settings ?? []).map((group) => <GroupForm key={group.title} group={group} />)}
    </View>
  );
}

function GroupForm({ group: { title, settings, test } }: { readonly group: Group }) {
  const set = useAction(api.settings.set);
  /** Unsaved values by setting name. */
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
      showToast(
        overridden.length === 0
          ? "Settings saved."
          : `Saved, but overridden by a flag or environment variable: ${overridden.map(labelOf).join(", ")}.`,
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
        ? <TestBackupTarget />
        : test === "places" && <Button onClick={() => setTesting(true)}>Test all locations</Button>}
    >
      <form className="settings" aria-label={title} onSubmit={submit}>
        {settings.map((setting) => (
          <Setting
            key={setting.name}
            setting={setting}
            entered={entered[setting.name]}
            error={error?.name === setting.name ? error.text : null}
            onEnter={(text) => setEntered((before) => withEntry(before, setting, text))}
            onReset={() => void attempt(() => store({ [setting.name]: null }))}
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
      {testing && test === "places" && <TestLocations onClose={() => setTesting(false)} />}
    </Card>
  );
}

/** Drops values that equal the stored one, and empty secrets. */
function withEntry(
  before: Readonly<Record<string, string>>,
  { name, secret, text, kind }: SettingView,
  entry: string,
): Readonly<Record<string, string>> {
  const { [name]: _, ...others } = before;
  const same = secret ? entry === "" : entry === (text ?? (kind === "switch" ? "false" : ""));
  return same ? others : { ...others, [name]: entry };
}

function TestBackupTarget() {
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
      showToast(`${place} is reachable and writable.`);
    });
    setBusy(false);
  }
  return (
    <Button disabled={busy} onClick={() => void test()}>
      {busy ? "Testing…" : "Test backup target"}
    </Button>
  );
}

interface SettingProps {
  readonly setting: SettingView;
  readonly entered: string | undefined;
  readonly error: string | null;
  readonly onEnter: (text: string) => void;
  /** Resets the setting to its default. */
  readonly onReset: () => void;
}

function Setting({ setting, entered, error, onEnter, onReset }: SettingProps) {
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
    ? "stored; enter a new value to replace it"
    : defaultText === null
    ? "not set"
    : `Default: ${defaultText}`;
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
          {set && <Button tone="plain" aria-label={`Reset ${labelOf(name)}`} onClick={onReset}>Reset</Button>}
        </div>
        <div id={`${id}-more`} className="row quiet small">
          {error !== null && <p className="field-error" role="alert">{error}</p>}
          {unreadable && <Badge tone="bad">encrypted with another server key; enter it again</Badge>}
          {given !== null
            ? (
              <span>
                <Badge tone="warn">{given.by === "flag" ? flag : env} takes precedence</Badge>{" "}
                {given.text !== null && <code>{given.text}</code>}
              </span>
            )
            : set
            ? (
              <span>
                <Badge tone="accent">customized</Badge> {defaultText !== null && `Default: ${defaultText}`}
              </span>
            )
            : null}
          {kind === "list" && <span>Separate values with commas.</span>}
          {encryptsSecrets && (
            <span>
              Values written as <code>{'{"secret": "…"}'}</code> are stored encrypted.
            </span>
          )}
        </div>
      </div>
    </div>
  );
}
