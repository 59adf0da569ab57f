/** The second factor of the signed-in user: set up, recovery codes, removal. */
import { createElement as h, type ReactElement, type ReactNode, useState } from "react";
import type { NewTotp } from "../../account_features/mod.ts";
import { useSecondFactor } from "../accounts/mod.ts";
import { PasswordForm, useConfirmation, useHasPassword } from "./confirmation.ts";
import { Button, CodeField, codeFrom, Form, Loading, Panel, Problem, useAttempt } from "./elements.ts";
import { useTexts } from "./texts.ts";

/** A step that replaces the controls. */
type Step =
  | { readonly name: "password" }
  | { readonly name: "scan"; readonly totp: NewTotp }
  | { readonly name: "codes"; readonly codes: readonly string[] };

/** The authenticator app of the signed-in user: set up with a QR code and recovery codes, renewal of these, removal. */
export function SecondFactorSettings(): ReactNode {
  const texts = useTexts();
  const { factors, ...change } = useSecondFactor();
  const hasPassword = useHasPassword();
  const attempt = useAttempt();
  const [step, setStep] = useState<Step | null>(null);
  const end = () => setStep(null);
  const confirmation = useConfirmation(attempt, end);
  if (factors === null) return null;
  if (factors === undefined || hasPassword === undefined) return h(Loading);

  const start = async (options: { readonly password?: string } = {}) =>
    setStep({ name: "scan", totp: await change.startTotp(options) });

  function content(): ReactNode {
    if (confirmation.form !== null) return confirmation.form;
    if (step?.name === "password") {
      return h(PasswordForm, {
        onCancel: end,
        onPassword: (password) => confirmation.make(() => start({ password })),
      });
    }
    if (step?.name === "scan") {
      return h(Scan, {
        totp: step.totp,
        onCancel: end,
        onCode: async (confirmation) =>
          setStep({ name: "codes", codes: await change.confirmTotp(confirmation) }),
      });
    }
    if (step?.name === "codes") return h(RecoveryCodes, { codes: step.codes, onDone: end });
    if (!factors?.totp) {
      return h(
        "div",
        { className: "syncline-group" },
        h("p", { className: "syncline-quiet" }, texts.factorOff),
        h(Problem, { attempt }),
        h(
          "div",
          { className: "syncline-row" },
          h(
            Button,
            { onClick: () => hasPassword ? setStep({ name: "password" }) : confirmation.run(start) },
            texts.factorSetUp,
          ),
        ),
      );
    }
    const renew = async () => setStep({ name: "codes", codes: await change.renewRecoveryCodes() });
    return h(
      "div",
      { className: "syncline-group" },
      h("p", { className: "syncline-quiet" }, texts.factorOn(factors.totp.enrolledAt, factors.recoveryCodes)),
      h(Problem, { attempt }),
      h(
        "div",
        { className: "syncline-row" },
        h(Button, { onClick: () => confirmation.run(renew) }, texts.newRecoveryCodes),
        h(Button, { onClick: () => confirmation.run(change.removeTotp) }, texts.factorRemove),
      ),
    );
  }

  const shown = confirmation.form !== null ? "proof" : step?.name ?? "";
  return h(Panel, { title: texts.factorTitle, step: shown }, content());
}

/** The QR code, the key for typing, and a form for the first code. */
function Scan(
  { totp, onCode, onCancel }: {
    readonly totp: NewTotp;
    readonly onCode: (confirmation: { enrolmentId: string; code: string }) => Promise<void>;
    readonly onCancel: () => void;
  },
): ReactElement {
  const texts = useTexts();
  const attempt = useAttempt();
  const image = `data:image/svg+xml,${encodeURIComponent(totp.qrCode)}`;
  return h(
    Form,
    {
      attempt,
      submit: texts.confirm,
      onSubmit: (field) => onCode({ enrolmentId: totp.enrolmentId, code: codeFrom(field) }),
      more: h(Button, { look: "link", onClick: onCancel }, texts.cancel),
    },
    h("p", null, texts.factorScan),
    // On a phone, the link opens the authenticator app.
    h("a", { href: totp.uri }, h("img", { src: image, alt: texts.factorQrCode })),
    h("p", null, `${texts.factorKey}: `, h("code", null, totp.secret)),
    h(CodeField, { attempt, label: texts.factorFirstCode }),
  );
}

function RecoveryCodes(
  { codes, onDone }: { readonly codes: readonly string[]; readonly onDone: () => void },
): ReactElement {
  const texts = useTexts();
  const [list, setList] = useState<HTMLUListElement | null>(null);
  const [isCopied, setCopied] = useState(false);
  // Also on pages without HTTPS, which have no clipboard API. Where it fails, the codes stay selected.
  const copy = () => {
    getSelection()!.selectAllChildren(list!);
    setCopied(document.execCommand("copy"));
  };
  return h(
    "div",
    { className: "syncline-group" },
    h("p", { role: "status" }, texts.recoveryCodesText),
    h(
      "ul",
      { ref: setList, className: "syncline-list syncline-codes", "aria-label": texts.recoveryCodesTitle },
      codes.map((code) => h("li", { key: code }, code)),
    ),
    h(
      "div",
      { className: "syncline-row" },
      h(Button, { onClick: copy }, isCopied ? texts.copied : texts.copy),
      h(Button, { look: "main", onClick: onDone }, texts.done),
    ),
  );
}
