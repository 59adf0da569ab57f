/** Settings that administrators change at runtime. Flags and environment variables take precedence. */
import { type FormEvent, useEffect, useState } from "react";
import { useAction, useQuery } from "syncline/react";
import type { SettingView } from "../../../../mod/ops/admin/isolate_functions/settings.ts";
import { adminSession } from "../../server/admin_session.ts";
import { api } from "../../server/api.ts";
import { href, useRoute } from "../../shell/route.ts";
import { Button, ReadOnlyNote, TextField } from "../../ui/controls.tsx";
import { Dialog, useUnsaved } from "../../ui/dialog.tsx";
import { attempt, dismissErrors, showToast } from "../../ui/toasts.tsx";
import { countOf } from "../../ui/format.tsx";
import { useSaveKey } from "../../ui/save_key.ts";
import { Card, Empty, Loading, View } from "../../ui/view.tsx";
import { labelOf, type Section, sectionsOf, withLabels } from "../../ui/setting_words.ts";
import { Providers } from "./providers.tsx";
import { Setting } from "./setting_field.tsx";
import { TestBucket, TestLocations } from "./test_locations.tsx";

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
      text="Uses the saved mail settings."
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
  const hasMail = settings?.some(({ name, given, set }) => name === "smtpUrl" && (given !== null || set)) ??
    true;
  useEffect(() => {
    if (!known || named === undefined) return;
    const setting = document.getElementById(`setting-${named}`);
    const section = document.getElementById(`section-${named}`);
    setting?.scrollIntoView({ block: "nearest" });
    section?.closest(".card")?.scrollIntoView({ block: "start" });
    (setting ?? section)?.focus({ preventScroll: true });
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
      <ReadOnlyNote needs="owner" />
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
            {sections.map((section) => (
              <SectionForm key={section.name} section={section} hasMail={hasMail} />
            ))}
          </div>
        </div>
      )}
    </View>
  );
}

function SectionForm({ section: { name: sectionName, title, text, settings, test }, hasMail }: {
  readonly section: Section;
  /** Whether a mail server is set. */
  readonly hasMail: boolean;
}) {
  const set = useAction(api.settings.set);
  /** Unsaved values by setting name. */
  const [entered, setEntered] = useState<Readonly<Record<string, string>>>({});
  const [error, setError] = useState<{ readonly name: string | null; readonly text: string } | null>(null);
  const [busy, setBusy] = useState(false);
  const [testing, setTesting] = useState<"mail" | "locations" | "bucket" | null>(null);
  const changed = Object.keys(entered).length;
  const authConfig = settings.find(({ name }) => name === "authConfig");
  const leavePrompt = useUnsaved(changed > 0, ["settings"]);
  useSaveKey(changed > 0 && !busy ? () => void store({ ...entered }) : null);

  async function store(changes: Record<string, string | null>): Promise<void> {
    setBusy(true);
    setError(null);
    dismissErrors();
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
      setError({ name: data?.name ?? null, text: withLabels(text) });
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
        ? <Button needs="owner" onClick={() => setTesting("mail")}>Send a test mail</Button>
        : test === "backupTarget"
        ? <TestBackupTarget />
        : test === "alerts"
        ? <TestAlerts />
        : test === "locations" && (
          <>
            <Button needs="owner" onClick={() => setTesting("bucket")}>Test a bucket</Button>
            <Button needs="editor" onClick={() => setTesting("locations")}>Test all locations</Button>
          </>
        )}
    >
      {authConfig !== undefined && (
        <div className="stack providers">
          <Providers setting={authConfig} busy={"authConfig" in entered} />
        </div>
      )}
      <form className="settings" aria-label={title} onSubmit={submit}>
        {text !== "" && <p className="quiet">{text}</p>}
        {settings.map((setting) => (
          <Setting
            key={setting.name}
            setting={setting}
            entered={entered[setting.name]}
            error={error?.name === setting.name ? error.text : null}
            hasMail={hasMail}
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
          <Button
            type="submit"
            tone="accent"
            needs="owner"
            title="Ctrl+S"
            busy={busy}
            disabled={changed === 0}
          >
            Save
          </Button>
        </div>
      </form>
      {leavePrompt}
      {testing === "mail" && <TestMail onClose={() => setTesting(null)} />}
      {testing === "locations" && <TestLocations onClose={() => setTesting(null)} />}
      {testing === "bucket" && <TestBucket onClose={() => setTesting(null)} />}
    </Card>
  );
}

/** Drops values that equal the stored one, and empty secrets. */
function withEntry(
  before: Readonly<Record<string, string>>,
  { name, secret, passwordInUrl, text, kind }: SettingView,
  entry: string,
): Readonly<Record<string, string>> {
  const { [name]: _, ...others } = before;
  const same = secret && !passwordInUrl
    ? entry === ""
    : entry === (text ?? (kind === "switch" ? "false" : ""));
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
    <Button needs="editor" disabled={busy} onClick={() => void test()}>
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
  return <Button needs="editor" busy={busy} onClick={() => void send()}>Send a test alert</Button>;
}
