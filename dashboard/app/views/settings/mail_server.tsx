/** The mail server as a form: host, port, encryption, user and password of its URL. The password is never sent to the page. */
import { useId, useState } from "react";
import type { SettingView } from "../../../../mod/ops/admin/isolate_functions/settings.ts";

/** Attributes of all inputs of settings. */
export interface InputProps {
  readonly id: string;
  readonly disabled: boolean;
  readonly "aria-describedby": string;
  readonly "aria-invalid": true | undefined;
}

interface Fields {
  readonly tls: boolean;
  readonly host: string;
  readonly port: string;
  readonly user: string;
  readonly password: string;
}

export function MailServer({ setting, entered, onEnter, input }: {
  readonly setting: SettingView;
  readonly entered: string | undefined;
  readonly onEnter: (url: string) => void;
  readonly input: InputProps;
}) {
  const { set, text, given, unreadable } = setting;
  const id = useId();
  const stored = fieldsOf(given?.text ?? text ?? "");
  const [edited, setEdited] = useState(stored);
  const fields = entered === undefined ? stored : edited;
  function change(part: Partial<Fields>): void {
    const next = { ...fields, ...part };
    setEdited(next);
    onEnter(urlOf(next));
  }
  const { disabled } = input;
  const kept = stored.user !== "" && stored.user === fields.user && stored.host === fields.host &&
    !unreadable;
  return (
    <div className="mail-server grow">
      <div className="field">
        <span aria-hidden="true">Host</span>
        <input
          className="input"
          {...input}
          placeholder={set && text === null ? "stored; enter it again to change it" : "smtp.example.com"}
          autoComplete="off"
          spellCheck={false}
          value={fields.host}
          onChange={(event) => change({ host: event.target.value.trim() })}
          onPaste={(event) => {
            const url = URL.parse(event.clipboardData.getData("text").trim());
            if (url === null || !/^smtps?:$/.test(url.protocol)) return;
            event.preventDefault();
            change({ ...fieldsOf(url.href), password: decoded(url.password) });
          }}
        />
      </div>
      <div className="field">
        <label htmlFor={`${id}-port`}>Port</label>
        <input
          id={`${id}-port`}
          className="input"
          inputMode="numeric"
          disabled={disabled}
          placeholder={fields.tls ? "465" : "587"}
          value={fields.port}
          onChange={(event) => change({ port: event.target.value.replace(/\D/g, "") })}
        />
      </div>
      <div className="field">
        <label htmlFor={`${id}-tls`}>Encryption</label>
        <select
          id={`${id}-tls`}
          className="input"
          disabled={disabled}
          value={fields.tls ? "tls" : "starttls"}
          onChange={(event) => change({ tls: event.target.value === "tls" })}
        >
          <option value="starttls">STARTTLS</option>
          <option value="tls">TLS from the start</option>
        </select>
      </div>
      <div className="field">
        <label htmlFor={`${id}-user`}>User name</label>
        <input
          id={`${id}-user`}
          className="input"
          autoComplete="off"
          spellCheck={false}
          disabled={disabled}
          value={fields.user}
          onChange={(event) => change({ user: event.target.value })}
        />
      </div>
      <div className="field">
        <label htmlFor={`${id}-password`}>Password</label>
        <input
          id={`${id}-password`}
          className="input"
          type="password"
          autoComplete="new-password"
          disabled={disabled}
          placeholder={kept ? given !== null ? "hidden" : "stored; enter a new one to replace it" : ""}
          aria-describedby={!kept && stored.user !== "" ? `${id}-again` : undefined}
          value={fields.password}
          onChange={(event) => change({ password: event.target.value })}
        />
        {!kept && stored.user !== "" && fields.user !== "" && (
          <p id={`${id}-again`} className="field-hint">
            The stored password is only kept for the same host and user name.
          </p>
        )}
      </div>
    </div>
  );
}

function fieldsOf(text: string): Fields {
  const url = URL.parse(text);
  return {
    tls: url?.protocol === "smtps:",
    host: url?.hostname ?? "",
    port: url?.port ?? "",
    user: decoded(url?.username ?? ""),
    password: "",
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function urlOf({ tls, host, port, user, password }: Fields): string {
  if (`${host}${port}${user}${password}` === "" && !tls) return "";
  const secret = password === "" ? "" : `:${encodeURIComponent(password)}`;
  const login = user === "" && secret === "" ? "" : `${encodeURIComponent(user)}${secret}@`;
  return `${tls ? "smtps" : "smtp"}://${login}${host}${port === "" ? "" : `:${port}`}`;
}
