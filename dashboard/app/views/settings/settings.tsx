/** Settings that administrators change at runtime. Flags and environment variables take precedence. */
import { type ComponentProps, type FormEvent, useEffect, useState } from "react";
import { useAction, useQuery } from "syncline/react";
import type { SettingView } from "../../../../mod/ops/admin/isolate_functions/settings.ts";
import { adminSession } from "../../server/admin_session.ts";
import { api, type MailKind } from "../../server/api.ts";
import { href, useRoute } from "../../shell/route.ts";
import { Badge, Button, Icon, TextField } from "../../ui/controls.tsx";
import { Dialog, useUnsaved } from "../../ui/dialog.tsx";
import { attempt, showToast } from "../../ui/toasts.tsx";
import { countOf } from "../../ui/format.tsx";
import { useSaveKey } from "../../ui/save_key.ts";
import { Card, Empty, Loading, View } from "../../ui/view.tsx";
import { descriptionOf, isInverted, labelOf, type Section, sectionsOf } from "../../ui/setting_words.ts";
import { TestLocations } from "./test_locations.tsx";

const KINDS: Readonly<Record<string, MailKind>> = {
  mailVerify: "verify",
  mailReset: "reset",
  mailMagic: "magic",
  mailChange: "change",
  mailDevice: "device",
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
  const sections = sectionsOf(settings ?? []);
  useEffect(() => {
    if (!known || named === undefined) return;
    const element = document.getElementById(`setting-${named}`) ??
      document.getElementById(`section-${named}`);
    element?.scrollIntoView({ block: "nearest" });
    element?.focus();
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
      {sections.length > 0 && (
        <div className="settings-view">
          <nav aria-label="Sections">
            <ul className="nav">
              {sections.map(({ name, title }) => (
                <li key={name}>
                  <a href={href(["settings", name])} aria-current={name === named ? "location" : undefined}>
                    {title}
                  </a>
                </li>
              ))}
            </ul>
          </nav>
          <div className="stack">
            {sections.map((section) => <SectionForm key={section.name} section={section} />)}
          </div>
        </div>
      )}
    </View>
  );
}

function SectionForm({ section: { name: sectionName, title, text, settings, test } }: {
  readonly section: Section;
}) {
  const set = useAction(api.settings.set);
  /** Unsaved values by setting name. */
  const [entered, setEntered] = useState<Readonly<Record<string, string>>>({});
  const [error, setError] = useState<{ readonly name: string | null; readonly text: string } | null>(null);
  const [busy, setBusy] = useState(false);
  const [testing, setTesting] = useState(false);
  const changed = Object.keys(entered).length;
  const leavePrompt = useUnsaved(changed > 0, ["settings"]);
  useSaveKey(changed > 0 && !busy ? () => void store({ ...entered }) : null);

  async function store(changes: Record<string, string | null>): Promise<void> {
    setBusy(true);
    setError(null);
    try {
      const { overridden } = await set({ changes });
      // Values entered in the meantime stay unsaved.
      setEntered((before) =>
        Object.fromEntries(
          Object.entries(before).filter(([name, value]) => !(name in changes) || value !== entered[name]),
        )
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
    if (changed > 0) void store({ ...entered });
  }

  return (
    <Card
      title={<span id={`section-${sectionName}`} tabIndex={-1}>{title}</span>}
      actions={test === "mail"
        ? <Button onClick={() => setTesting(true)}>Send a test mail</Button>
        : test === "backupTarget"
        ? <TestBackupTarget />
        : test === "alerts"
        ? <TestAlerts />
        : test === "locations" && <Button onClick={() => setTesting(true)}>Test all locations</Button>}
    >
      <form className="settings" aria-label={title} onSubmit={submit}>
        {text !== "" && <p className="quiet">{text}</p>}
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
            <>
              <span className="quiet">{countOf(changed, "unsaved change")}</span>
              <Button
                onClick={() => {
                  setEntered({});
                  setError(null);
                }}
              >
                Discard
              </Button>
            </>
          )}
          <Button type="submit" tone="accent" title="Ctrl+S" busy={busy} disabled={changed === 0}>
            Save
          </Button>
        </div>
      </form>
      {leavePrompt}
      {testing && test === "mail" && <TestMail onClose={() => setTesting(false)} />}
      {testing && test === "locations" && <TestLocations onClose={() => setTesting(false)} />}
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

/** Sends a test alert to the stored recipients. */
function TestAlerts() {
  const test = useAction(api.alerts.test);
  const [busy, setBusy] = useState(false);
  async function send(): Promise<void> {
    setBusy(true);
    await attempt(async () => {
      for (const { channel, error } of await test({})) {
        if (error === null) showToast(`Test alert sent to ${channel}.`);
        else showToast(`${channel}: ${error}`, { tone: "bad" });
      }
    });
    setBusy(false);
  }
  return <Button busy={busy} onClick={() => void send()}>Send a test alert</Button>;
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
  const { name, kind, secret, set, text, flag, env, given, defaultText, unreadable, encryptsSecrets } =
    setting;
  const id = `setting-${name}`;
  const mail = mailOf(name);
  const [previewing, setPreviewing] = useState(false);
  const locked = given !== null;
  const common = {
    id,
    disabled: locked,
    "aria-describedby": `${id}-more`,
    "aria-invalid": error === null ? undefined : true,
  } as const;
  const placeholder = locked && secret
    ? "hidden"
    : secret && set && !unreadable
    ? "stored; enter a new value to replace it"
    : defaultText === null
    ? "not set"
    : `Default: ${defaultText}`;
  const value = given !== null ? given.text ?? "" : entered ?? (secret ? "" : text ?? "");
  return (
    <div className="setting">
      <div>
        <label htmlFor={id}>{labelOf(name)}</label>
        <p className="field-hint">{descriptionOf(setting)}</p>
      </div>
      <div className="stack">
        <div className="row">
          {kind === "switch"
            ? (
              <Switch
                {...common}
                on={(value === "true") !== isInverted(name)}
                onSwitch={() => onEnter(String(value !== "true"))}
              />
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
          {locked && (
            <span className="row">
              <Icon name="lock" /> Set by <code>{given.by === "flag" ? flag : env}</code>. {set
                ? "The value stored here is not used."
                : "Start the server without it to change the value here."}
            </span>
          )}
          {!locked && set && (
            <span>
              <Badge tone="accent">customized</Badge>{" "}
              {kind !== "switch" && defaultText !== null && `Default: ${defaultText}`}
            </span>
          )}
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

function Switch(
  { on, onSwitch, "aria-invalid": _, ...button }: ComponentProps<"button"> & {
    readonly on: boolean;
    readonly onSwitch: () => void;
  },
) {
  return (
    <>
      <button
        type="button"
        className="switch"
        role="switch"
        aria-checked={on}
        onClick={onSwitch}
        {...button}
      />
      <span className="quiet" aria-hidden="true">{on ? "On" : "Off"}</span>
    </>
  );
}
