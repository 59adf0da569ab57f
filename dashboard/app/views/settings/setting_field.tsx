/** One setting: its input, the source of its value, and the reset. */
import { type ComponentProps, type ReactNode, useEffect, useState } from "react";
import { useAction } from "syncline/react";
import type { SettingView } from "../../../../mod/ops/admin/isolate_functions/settings.ts";
import { api, type MailKind } from "../../server/api.ts";
import { useRefusal } from "../../ui/access.tsx";
import { href } from "../../shell/route.ts";
import { Badge, Button, Icon } from "../../ui/controls.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { choicesOf, descriptionOf, isInverted, labelOf, needsMail } from "../../ui/setting_words.ts";
import { Loading } from "../../ui/view.tsx";
import { type InputProps, MailServer } from "./mail_server.tsx";
import { Thresholds } from "./thresholds.tsx";

/** A list with a form of its own. */
const THRESHOLDS = "alertWhen";

const KINDS: Readonly<Record<string, MailKind>> = {
  mailVerify: "verify",
  mailReset: "reset",
  mailMagic: "magic",
  mailChange: "change",
  mailDevice: "device",
};

export interface SettingProps {
  readonly setting: SettingView;
  readonly entered: string | undefined;
  readonly error: string | null;
  /** Whether a mail server is set. */
  readonly hasMail: boolean;
  readonly onEnter: (text: string) => void;
  /** Resets the setting to its default. */
  readonly onReset: () => void;
}

export function Setting(props: SettingProps) {
  const { setting, entered, error, hasMail, onReset } = props;
  const { name, kind, set, flag, env, given, defaultText, unreadable, encryptsSecrets } = setting;
  const id = `setting-${name}`;
  const mail = KINDS[name];
  const [previewing, setPreviewing] = useState(false);
  const locked = given !== null;
  const refusal = useRefusal("owner");
  const input: InputProps = {
    id,
    disabled: locked || refusal !== undefined,
    "aria-describedby": `${id}-more`,
    "aria-invalid": error === null ? undefined : true,
  };
  return (
    <div className="setting">
      <div>
        <label htmlFor={id}>{labelOf(name)}</label>
        <p className="field-hint">{descriptionOf(setting)}</p>
      </div>
      <div className="stack">
        <div className="row">
          <Input {...props} input={input} />
          {mail !== undefined && (
            <Button
              aria-label={`Preview ${labelOf(name)}`}
              onClick={() => setPreviewing(true)}
            >
              Preview
            </Button>
          )}
          {mail !== undefined && previewing && (
            <PreviewMail
              kind={mail}
              text={entered}
              onClose={() => setPreviewing(false)}
            />
          )}
          {set && (
            <Button
              tone="plain"
              needs="owner"
              aria-label={`Reset ${labelOf(name)}`}
              onClick={onReset}
            >
              Reset
            </Button>
          )}
        </div>
        <div id={`${id}-more`} className="row quiet small">
          {error !== null && <p className="field-error" role="alert">{error}</p>}
          {unreadable && <Badge tone="bad">encrypted with another server key; enter it again</Badge>}
          {locked && (
            <span className="row">
              <Icon name="lock" />
              <span>
                Set by <code>{given.by === "flag" ? flag : env}</code>. {set
                  ? "The value stored here is not used."
                  : "Start the server without it to change the value here."}
              </span>
            </span>
          )}
          {!locked && set && (
            <span>
              <Badge tone="accent">customized</Badge>{" "}
              {kind !== "switch" && defaultText !== null && `Default: ${defaultText}`}
            </span>
          )}
          {kind === "list" && name !== THRESHOLDS && <span>Separate values with commas.</span>}
          {!hasMail && needsMail(name) && (
            <span>
              <Badge tone="warn">no effect</Badge> The server sends no mail until a{" "}
              <a href={href(["settings", "mail"])}>mail server</a> is set.
            </span>
          )}
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

function Input(
  { setting, entered, onEnter, input }: SettingProps & { readonly input: InputProps },
): ReactNode {
  const { name, kind, secret, passwordInUrl, set, text, given, defaultText, unreadable } = setting;
  if (passwordInUrl) {
    return <MailServer setting={setting} entered={entered} onEnter={onEnter} input={input} />;
  }
  if (name === THRESHOLDS) {
    return <Thresholds setting={setting} entered={entered} onEnter={onEnter} input={input} />;
  }
  const value = given !== null ? given.text ?? "" : entered ?? (secret ? "" : text ?? "");
  if (kind === "switch") {
    return (
      <Switch
        {...input}
        on={(value === "true") !== isInverted(name)}
        onSwitch={() => onEnter(String(value !== "true"))}
      />
    );
  }
  const choices = choicesOf(name);
  if (choices !== undefined) {
    return (
      <select
        {...input}
        className="input grow"
        value={value || defaultText || ""}
        onChange={(event) => onEnter(event.target.value)}
      >
        {choices.map((choice) => <option key={choice} value={choice}>{choice}</option>)}
      </select>
    );
  }
  // A list of secrets has several parts, which cannot be checked while they are hidden. A stored one is never shown.
  const hidden = secret && kind !== "list";
  const placeholder = given !== null && secret
    ? "hidden"
    : secret && set && !unreadable
    ? "stored; enter a new value to replace it"
    : defaultText === null
    ? "not set"
    : `Default: ${defaultText}`;
  const common = {
    className: "input grow",
    ...input,
    spellCheck: false,
    value,
    placeholder,
    onChange: (event: { readonly target: { readonly value: string } }) => onEnter(event.target.value),
  };
  return kind === "long"
    ? <textarea {...common} rows={value === "" ? 2 : Math.min(16, value.split("\n").length + 1)} />
    : (
      <input
        {...common}
        type={hidden ? "password" : "text"}
        autoComplete={hidden ? "new-password" : "off"}
      />
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
