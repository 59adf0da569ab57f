/** Elements that the account forms share, and the state of a form that is sent. */
import {
  createElement as h,
  type InputHTMLAttributes,
  type ReactElement,
  type ReactNode,
  type RefObject,
  useEffect,
  useId,
  useRef,
  useState,
} from "react";
import { ROOT, Style } from "./style.ts";
import { codeOf, problemOf, useTexts } from "./texts.ts";

/** A call to the server, with its state for users. */
export interface Attempt {
  readonly isPending: boolean;
  /** Message of the last error; empty if there was none. */
  readonly problem: string;
  /** Code of the last error, or `null`. */
  readonly code: string | null;
  /** Id of the element with `problem`. */
  readonly problemId: string;
  /** Runs a call unless one is pending. Errors become `problem`. */
  run(work: () => Promise<unknown>): Promise<void>;
  /** Shows an error from elsewhere. */
  fail(error: unknown): void;
}

/** `errors` overrides messages by code. */
export function useAttempt(errors: Readonly<Record<string, string>> = {}): Attempt {
  const texts = useTexts();
  const problemId = useId();
  const isRunning = useRef(false);
  const [{ isPending, error }, setState] = useState<{ isPending: boolean; error: unknown }>({
    isPending: false,
    error: null,
  });
  const code = codeOf(error);
  return {
    isPending,
    code,
    problemId,
    problem: error === null ? "" : errors[code ?? ""] ?? problemOf(texts, error),
    async run(work) {
      if (isRunning.current) return;
      isRunning.current = true;
      setState({ isPending: true, error: null });
      try {
        await work();
        setState({ isPending: false, error: null });
      } catch (error) {
        setState({ isPending: false, error });
      } finally {
        isRunning.current = false;
      }
    },
    fail: (error) => setState({ isPending: false, error }),
  };
}

/** Returns the ref of an element whose first field or button receives the focus when `step` changes. */
export function useStepFocus<Root extends HTMLElement>(step: string): RefObject<Root | null> {
  const root = useRef<Root>(null);
  const shown = useRef(step);
  useEffect(() => {
    if (shown.current === step) return;
    shown.current = step;
    root.current?.querySelector<HTMLElement>("input:not([hidden]), button")?.focus();
  }, [step]);
  return root;
}

/** The outer element of a form or section, with its title. The focus follows `step`. */
export function Panel(
  { title, step = "", children }: {
    readonly title: string;
    readonly step?: string;
    readonly children?: ReactNode;
  },
): ReactElement {
  const id = useId();
  const root = useStepFocus<HTMLElement>(step);
  return h(
    "section",
    { className: ROOT, ref: root, "aria-labelledby": id },
    h(Style),
    h("h2", { id }, title),
    children,
  );
}

/** Shown while results load, after a moment. */
export function Loading(): ReactElement {
  return h(
    "div",
    { className: ROOT },
    h(Style),
    h("p", { role: "status", className: "syncline-quiet syncline-waiting" }, useTexts().loading),
  );
}

/** The message of an error. The element is always present, so that screen readers announce changes. */
export function Problem(
  { attempt }: { readonly attempt: Pick<Attempt, "problem" | "problemId"> },
): ReactElement {
  return h("p", { id: attempt.problemId, role: "alert", className: "syncline-problem" }, attempt.problem);
}

/** A button that runs `onClick` as an attempt, or at once. */
export function Button(
  { attempt, onClick, look, label, children }: {
    readonly attempt?: Attempt;
    readonly onClick: () => unknown;
    readonly look?: "main" | "link";
    /** For screen readers, if the text is ambiguous. */
    readonly label?: string;
    readonly children?: string;
  },
): ReactElement {
  return h("button", {
    type: "button",
    ...look && { className: `syncline-${look}` },
    "aria-label": label,
    // A disabled button would lose the focus.
    "aria-disabled": attempt?.isPending,
    onClick: () => attempt === undefined ? onClick() : attempt.run(async () => await onClick()),
  }, children);
}

/** A labeled field. After an error with one of the codes in `faults`, it is invalid, and the error describes it. */
export function Field(
  { label, hint, attempt, faults = [], ...input }: InputHTMLAttributes<HTMLInputElement> & {
    readonly label: string;
    readonly hint?: string;
    readonly attempt: Attempt;
    readonly faults?: readonly string[];
  },
): ReactElement {
  const id = useId();
  const isInvalid = attempt.code !== null && faults.includes(attempt.code);
  return h(
    "div",
    { className: "syncline-field" },
    h("label", { htmlFor: id }, label),
    h("input", {
      id,
      required: true,
      "aria-invalid": isInvalid || undefined,
      "aria-describedby": isInvalid ? attempt.problemId : hint && `${id}-hint`,
      ...input,
    }),
    hint && h("small", { id: `${id}-hint` }, hint),
  );
}

/** A form that sends its fields as an attempt. After an error, its first invalid field receives the focus. */
export function Form(
  { attempt, submit, onSubmit, children, more }: {
    readonly attempt: Attempt;
    /** Text of the button. */
    readonly submit: string;
    /** Receives a function that returns the value of a field. */
    readonly onSubmit: (field: (name: string) => string) => Promise<unknown>;
    readonly children?: ReactNode;
    /** Below the button. */
    readonly more?: ReactNode;
  },
): ReactElement {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (attempt.problem) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [attempt.problem]);
  return h(
    "form",
    {
      ref: form,
      "aria-busy": attempt.isPending,
      onSubmit: (event) => {
        event.preventDefault();
        const fields = new FormData(event.currentTarget);
        void attempt.run(() => onSubmit((name) => String(fields.get(name) ?? "")));
      },
    },
    children,
    h(Problem, { attempt }),
    h(
      "button",
      { type: "submit", className: "syncline-main", "aria-disabled": attempt.isPending },
      submit,
    ),
    more,
  );
}

/** The user's address, for password managers. */
export function HiddenEmail({ email }: { readonly email: string }): ReactElement {
  return h("input", { type: "email", autoComplete: "username", value: email, readOnly: true, hidden: true });
}

/** The field for the password of an account. */
export function PasswordField({ attempt }: { readonly attempt: Attempt }): ReactElement {
  return h(Field, {
    attempt,
    label: useTexts().password,
    name: "password",
    type: "password",
    autoComplete: "current-password",
    faults: ["invalid_credentials"],
  });
}

/** The field for a new password. */
export function NewPasswordField(
  { attempt, label }: { readonly attempt: Attempt; readonly label: string },
): ReactElement {
  return h(Field, {
    attempt,
    label,
    name: "password",
    type: "password",
    autoComplete: "new-password",
    faults: ["weak_password", "invalid_password"],
    minLength: 8,
    hint: useTexts().passwordHint,
  });
}

/** The field for a code of a mail or an authenticator app. */
export function CodeField(
  { attempt, label }: { readonly attempt: Attempt; readonly label: string },
): ReactElement {
  return h(Field, {
    attempt,
    label,
    name: "code",
    autoComplete: "one-time-code",
    faults: ["invalid_code"],
    inputMode: "numeric",
  });
}

/** Returns a code without the spaces that users type or paste. */
export function codeFrom(field: (name: string) => string): string {
  return field("code").replaceAll(/\s/g, "");
}
