/** Identity providers of the setting `authConfig`: a form for each, the callback address, and a test. */
import { useCallback, useEffect, useState } from "react";
import { useAction } from "syncline/react";
import type { ProviderCheck, ProviderStep } from "../../../../mod/auth/oauth/provider_check.ts";
import type { ActiveProviders } from "../../../../mod/ops/admin/actions.ts";
import type { SettingView } from "../../../../mod/ops/admin/isolate_functions/settings.ts";
import { api } from "../../server/api.ts";
import { copyText } from "../../ui/copy_text.ts";
import { Button, CheckField, Icon, SelectField, TextField } from "../../ui/controls.tsx";
import { Dialog, FormDialog, useConfirm } from "../../ui/dialog.tsx";
import { scrollToShown } from "../../ui/focus.ts";
import { showToast } from "../../ui/toasts.tsx";
import { Empty } from "../../ui/view.tsx";
import {
  authConfigOf,
  fieldText,
  presetOf,
  PROVIDER_PRESETS,
  type ProviderConfig,
  type ProviderField,
  withFields,
} from "./provider_fields.ts";
import { TestSteps } from "./test_steps.tsx";

interface Edited {
  /** `null` for a new one. */
  readonly name: string | null;
  readonly config: ProviderConfig;
}

export function Providers({ setting, busy }: {
  readonly setting: SettingView;
  /** Whether the JSON below has unsaved changes, which a change of the list would not contain. */
  readonly busy: boolean;
}) {
  const list = useAction(api.settings.providers);
  const set = useAction(api.settings.set);
  const [active, setActive] = useState<ActiveProviders | null>(null);
  const [edited, setEdited] = useState<Edited | null>(null);
  const [tested, setTested] = useState<string | null>(null);
  const { ask, dialog } = useConfirm();
  const locked = setting.given !== null;
  const config = authConfigOf(setting.text);
  const read = useCallback(() => void list({}).then(setActive, () => {}), [list]);
  useEffect(read, [read, setting.text]);
  // The content of a file is not known here, only its providers.
  const names = locked ? active?.names ?? [] : Object.keys(config.providers);
  const callbackOf = (name: string) =>
    `${active?.publicUrl ?? location.origin}/api/auth/oauth/${name}/callback`;

  async function save(providers: Readonly<Record<string, ProviderConfig>>): Promise<void> {
    const empty = Object.keys(providers).length === 0 && Object.keys(config).length === 1;
    await set({ changes: { authConfig: empty ? null : JSON.stringify({ ...config, providers }, null, 2) } });
  }

  return (
    <>
      {names.length === 0 && <Empty title="No providers" />}
      {names.length > 0 && (
        <ul className="provider-list">
          {names.map((name) => {
            const provider = config.providers[name] ?? {};
            const clientId = provider["clientId"];
            return (
              <li key={name}>
                <div className="row">
                  <strong>{locked ? name : PROVIDER_PRESETS[presetOf(name, provider)]?.label ?? name}</strong>
                  {!locked && <span className="quiet mono">{name}</span>}
                  <span className="grow" />
                  <Button needs="owner" aria-label={`Test ${name}`} onClick={() => setTested(name)}>
                    Test
                  </Button>
                  {!locked && (
                    <>
                      <Button
                        needs="owner"
                        aria-label={`Edit ${name}`}
                        disabled={busy}
                        onClick={() => setEdited({ name, config: provider })}
                      >
                        Edit
                      </Button>
                      <Button
                        tone="bad"
                        needs="owner"
                        aria-label={`Remove ${name}`}
                        disabled={busy}
                        onClick={() =>
                          ask({
                            title: `Remove ${name}?`,
                            text: "Users can no longer sign in with it. Their accounts stay.",
                            button: "Remove provider",
                            done: "Provider removed.",
                            run: () => {
                              const { [name]: _, ...others } = config.providers;
                              return save(others);
                            },
                          })}
                      >
                        Remove
                      </Button>
                    </>
                  )}
                </div>
                <dl className="facts">
                  {typeof clientId === "string" && (
                    <>
                      <dt>Client ID</dt>
                      <dd>{clientId}</dd>
                    </>
                  )}
                  <dt>Callback address</dt>
                  <dd>
                    <span className="mono">{callbackOf(name)}</span>{" "}
                    <Button
                      aria-label={`Copy the callback address of ${name}`}
                      onClick={() => void copyText(callbackOf(name), "Callback address copied.")}
                    >
                      Copy
                    </Button>
                  </dd>
                </dl>
              </li>
            );
          })}
        </ul>
      )}
      {!locked && (
        <div className="row">
          <Button needs="owner" disabled={busy} onClick={() => setEdited({ name: null, config: {} })}>
            <Icon name="plus" /> Add a provider
          </Button>
          {busy && <span className="quiet">Save or discard the JSON first.</span>}
        </div>
      )}
      {edited !== null && (
        <ProviderForm
          edited={edited}
          taken={Object.keys(config.providers)}
          callbackOf={callbackOf}
          onSave={async (name, provider) => {
            await save({ ...config.providers, [name]: provider });
            showToast(`Provider ${name} saved.`);
            setEdited(null);
            // The next step, with the address to register.
            setTested(name);
          }}
          onClose={() => setEdited(null)}
        />
      )}
      {tested !== null && (
        <TestProvider
          name={tested}
          callback={callbackOf(tested)}
          onClose={() => setTested(null)}
        />
      )}
      {dialog}
    </>
  );
}

function ProviderForm({ edited: { name: existing, config }, taken, callbackOf, onSave, onClose }: {
  readonly edited: Edited;
  readonly taken: readonly string[];
  readonly callbackOf: (name: string) => string;
  readonly onSave: (name: string, config: ProviderConfig) => Promise<void>;
  readonly onClose: () => void;
}) {
  const [preset, setPreset] = useState(existing === null ? "google" : presetOf(existing, config));
  const [entered, setEntered] = useState<string | null>(existing);
  const [error, setError] = useState<string | null>(null);
  const { where, fields } = PROVIDER_PRESETS[preset] ?? { where: "", fields: [] };
  const name = entered ?? preset;
  async function submit(form: FormData): Promise<void> {
    setError(null);
    if (existing === null && taken.includes(name)) return setError(`There is a provider ${name} already.`);
    const textOf = (field: string) => String(form.get(field) ?? "");
    const linkByEmail = form.get("linkByEmail") !== null;
    try {
      await onSave(name, withFields(config, { preset, name, textOf, linkByEmail }));
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
    }
  }
  return (
    <FormDialog
      title={existing === null ? "Add a provider" : `Edit ${existing}`}
      button="Save and test"
      onSubmit={submit}
      onClose={onClose}
    >
      {existing === null && (
        <>
          <SelectField label="Provider" value={preset} onChange={(event) => setPreset(event.target.value)}>
            {Object.entries(PROVIDER_PRESETS).map(([key, { label }]) => (
              <option key={key} value={key}>{label}</option>
            ))}
          </SelectField>
          <TextField
            label="Name"
            value={name}
            required
            pattern="[a-z][a-z0-9\-]{0,31}"
            hint="Part of its addresses: lower-case letters, digits and hyphens."
            onChange={(event) => setEntered(event.target.value)}
          />
        </>
      )}
      <TextField
        label="Callback address"
        value={callbackOf(name)}
        readOnly
        hint={`Register it at the provider. ${where}.`}
        onFocus={(event) => event.currentTarget.select()}
      />
      <div className="row">
        <Button onClick={() => void copyText(callbackOf(name), "Callback address copied.")}>
          Copy callback address
        </Button>
      </div>
      {fields.map((field) => <Field key={`${preset} ${field.name}`} field={field} config={config} />)}
      <CheckField
        label="Link users who have the same verified email address"
        name="linkByEmail"
        defaultChecked={config["linkByEmail"] !== false}
      />
      {error !== null && <p ref={scrollToShown} className="field-error" role="alert">{error}</p>}
    </FormDialog>
  );
}

function Field({ field, config }: { readonly field: ProviderField; readonly config: ProviderConfig }) {
  const { name, label, hint, kind, required, placeholder } = field;
  const hidden = kind === "secret" || kind === "long";
  const stored = hidden && config[name] !== undefined;
  const texts = {
    name,
    label,
    hint: hint ?? "",
    required: required && !stored,
    placeholder: stored ? "stored; enter a new value to replace it" : placeholder ?? "",
    defaultValue: fieldText(field, config),
  };
  if (kind !== "long") {
    return (
      <TextField
        {...texts}
        type={hidden ? "password" : "text"}
        autoComplete={hidden ? "new-password" : "off"}
        spellCheck={false}
      />
    );
  }
  return (
    <div className="field">
      <label htmlFor={`provider-${name}`}>{label}</label>
      <textarea
        id={`provider-${name}`}
        className="input"
        name={name}
        rows={4}
        spellCheck={false}
        required={texts.required}
        placeholder={texts.placeholder}
        aria-describedby={`provider-${name}-more`}
      />
      <p id={`provider-${name}-more`} className="field-hint">{hint}</p>
    </div>
  );
}

const STEP_TEXTS: Readonly<Record<ProviderStep, string>> = {
  endpoints: "Client ID and secret are set, the addresses of the provider are known",
  page: "The sign-in page accepts the client ID and the callback address",
  client: "The provider accepts the client secret",
};

function TestProvider({ name, callback, onClose }: {
  readonly name: string;
  readonly callback: string;
  readonly onClose: () => void;
}) {
  const test = useAction(api.settings.testProvider);
  const [round, setRound] = useState(0);
  const [check, setCheck] = useState<ProviderCheck | { readonly failed: string } | null>(null);
  useEffect(() => {
    let over = false;
    setCheck(null);
    test({ name, origin: location.origin }).then(
      (result) => over || setCheck(result),
      (error) => over || setCheck({ failed: error instanceof Error ? error.message : String(error) }),
    );
    return () => {
      over = true;
    };
  }, [test, name, round]);
  const lines = check === null
    ? null
    : "failed" in check
    ? [{ text: check.failed, error: true }]
    : check.steps.map(({ step, error }) => ({ text: error ?? STEP_TEXTS[step], error: error !== null }));
  const unknown = check !== null && "steps" in check && check.steps.every(({ error }) => error === null) &&
    !check.steps.some(({ step }) => step === "client");
  return (
    <Dialog
      open
      title={`Test ${name}`}
      text="Starts a sign-in that no user finishes, as configured now."
      onClose={onClose}
      footer={<Button onClick={() => setRound(round + 1)}>Test again</Button>}
    >
      <TestSteps lines={lines} />
      {unknown && (
        <p className="quiet">
          The provider does not reveal whether the client secret is right. Sign in once.
        </p>
      )}
      <p className="quiet">
        Callback address: <span className="mono">{callback}</span>
      </p>
    </Dialog>
  );
}
