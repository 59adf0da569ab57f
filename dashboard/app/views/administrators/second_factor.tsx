/** The second factor of the signed-in administrator: set up, recovery codes, removal. */
import { type FormEvent, useState } from "react";
import { type NewTotp, ownFactors } from "syncline/accounts";
import { useAction, useQuery } from "syncline/react";
import { api } from "../../server/api.ts";
import { Button, TextField } from "../../ui/controls.tsx";
import { copyText } from "../../ui/copy_text.ts";
import { Dialog, useConfirm } from "../../ui/dialog.tsx";
import { Time } from "../../ui/format.tsx";
import { saveFile } from "../../ui/save_file.ts";
import { attempt } from "../../ui/toasts.tsx";
import { Loading } from "../../ui/view.tsx";
import { useIdentityProof } from "../../ui/identity_proof.tsx";

const { administrators } = api;

export function SecondFactor({ onClose }: { readonly onClose: () => void }) {
  const factors = useQuery(ownFactors);
  const [recoveryCodes, setRecoveryCodes] = useState<readonly string[] | null>(null);
  if (recoveryCodes !== null) return <RecoveryCodes codes={recoveryCodes} onClose={onClose} />;
  if (factors && factors.totp === null) return <SetUp onCodes={setRecoveryCodes} onClose={onClose} />;
  return (
    <Manage
      factors={factors ?? undefined}
      onCodes={setRecoveryCodes}
      onClose={onClose}
    />
  );
}

function SetUp({ onCodes, onClose }: {
  readonly onCodes: (codes: readonly string[]) => void;
  readonly onClose: () => void;
}) {
  const start = useAction(administrators.startTotp);
  const confirm = useAction(administrators.confirmTotp);
  const [started, setStarted] = useState<NewTotp | null>(null);

  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    await attempt(async () => {
      if (started === null) return setStarted(await start({ password: String(form.get("password")) }));
      const { enrolmentId } = started;
      onCodes((await confirm({ enrolmentId, code: String(form.get("code")) })).recoveryCodes);
    });
  }

  return (
    <Dialog
      open
      title="Set up a second factor"
      text="After your password, the dashboard then asks for a code of an authenticator app on your phone."
      onClose={onClose}
      footer={
        <Button type="submit" form="factor" tone="accent">{started === null ? "Continue" : "Confirm"}</Button>
      }
    >
      <form id="factor" className="stack" onSubmit={(event) => void submit(event)}>
        {started === null
          ? (
            <TextField
              key="password"
              label="Password"
              name="password"
              type="password"
              autoComplete="current-password"
              required
              autoFocus
            />
          )
          : (
            <>
              <p>Scan the QR code with the app, and enter the code that it shows.</p>
              <img
                src={`data:image/svg+xml,${encodeURIComponent(started.qrCode)}`}
                alt={`QR code for ${started.uri}`}
                width="200"
                height="200"
              />
              <p className="quiet">
                Or type in this key: <code className="mono">{started.secret}</code>
              </p>
              <TextField
                key="code"
                label="Code"
                name="code"
                autoComplete="one-time-code"
                required
                autoFocus
              />
            </>
          )}
      </form>
    </Dialog>
  );
}

function Manage({ factors, onCodes, onClose }: {
  /** `undefined` while they load. */
  readonly factors: {
    readonly totp: { readonly enrolledAt: number; readonly lastUsedAt: number } | null;
    readonly recoveryCodes: number;
  } | undefined;
  readonly onCodes: (codes: readonly string[]) => void;
  readonly onClose: () => void;
}) {
  const remove = useAction(administrators.removeTotp);
  const renew = useAction(administrators.renewRecoveryCodes);
  const { confirmed, proofDialog } = useIdentityProof();
  const { ask, dialog } = useConfirm();
  const change = (run: () => Promise<void>) => void attempt(() => confirmed(run));

  const renewCodes = async () => onCodes((await renew({})).recoveryCodes);
  const removeFactor = async () => {
    await remove({});
    onClose();
  };
  return (
    <Dialog
      open
      title="My second factor"
      onClose={onClose}
      footer={
        <>
          <Button onClick={() => change(renewCodes)}>New recovery codes</Button>
          <Button
            tone="bad"
            onClick={() =>
              ask({
                title: "Remove your second factor?",
                text:
                  "From then on, your password signs you in without a code. Your recovery codes become invalid.",
                button: "Remove",
                run: () => confirmed(removeFactor),
              })}
          >
            Remove second factor
          </Button>
        </>
      }
    >
      {!factors?.totp && <Loading />}
      {factors?.totp && (
        <dl className="facts">
          <dt>Authenticator app</dt>
          <dd>
            set up <Time at={factors.totp.enrolledAt} as="ago" />
          </dd>
          <dt>Last used</dt>
          <dd>
            <Time at={factors.totp.lastUsedAt} as="ago" />
          </dd>
          <dt>Recovery codes</dt>
          <dd>{factors.recoveryCodes} left</dd>
        </dl>
      )}
      {dialog}
      {proofDialog}
    </Dialog>
  );
}

function RecoveryCodes(
  { codes, onClose }: { readonly codes: readonly string[]; readonly onClose: () => void },
) {
  const text = `${codes.join("\n")}\n`;
  return (
    <Dialog
      open
      title="Recovery codes"
      text="Each signs you in once if you lose your phone. They are not shown again."
      onClose={onClose}
      footer={
        <>
          <Button onClick={() => void copyText(text, "Recovery codes copied.")}>Copy</Button>
          <Button onClick={() => saveFile("syncline-recovery-codes.txt", new Blob([text]))}>Download</Button>
          <Button tone="accent" onClick={onClose}>I have stored them</Button>
        </>
      }
    >
      <ul aria-label="Recovery codes" className="mono">
        {codes.map((code) => <li key={code}>{code}</li>)}
      </ul>
    </Dialog>
  );
}
