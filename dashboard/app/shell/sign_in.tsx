/** Sign-in page, and the setup of the first administrator with the link printed by the server. */
import { type FormEvent, useEffect, useState } from "react";
import { proofOf, type SignInChallenge, supportsPasskeys } from "syncline/accounts";
import { adminSession, RequestError } from "../server/admin_session.ts";
import { Button, TextField } from "../ui/controls.tsx";
import { usePasskeySupport, withReadableErrors } from "../ui/passkeys.ts";

export function SignIn({ setupToken, ended }: {
  readonly setupToken: string | null;
  /** Whether a session has just ended. */
  readonly ended: boolean;
}) {
  const [needsSetup, setNeedsSetup] = useState(false);
  /** Whether the server has answered whether setup is needed. */
  const [known, setKnown] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [challenge, setChallenge] = useState<SignInChallenge | null>(null);
  useEffect(() => {
    adminSession.needsSetup().then((needed) => {
      setNeedsSetup(needed);
      setKnown(true);
    }, () => {});
  }, []);
  const setup = setupToken !== null && needsSetup;
  const passkeys = usePasskeySupport() && known && !needsSetup;
  const asking = passkeys && challenge === null;
  useEffect(() => {
    if (!asking) return;
    const ended = new AbortController();
    const offer = async () => {
      if (!await supportsPasskeys({ autofill: true }) || ended.signal.aborted) return;
      await adminSession.signInWithPasskey({ autofill: true, signal: ended.signal });
    };
    offer().catch((failure) => {
      // Other failures are those of a browser or address that cannot offer passkeys in the field.
      if (failure instanceof RequestError && failure.code !== "passkeys_unavailable") {
        setError(failure.message);
      }
    });
    return () => ended.abort();
  }, [asking]);

  async function usePasskey(): Promise<void> {
    setBusy(true);
    setError(null);
    try {
      await withReadableErrors(() => adminSession.signInWithPasskey());
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
      setBusy(false);
    }
  }

  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const credentials = { email: String(form.get("email")), password: String(form.get("password")) };
    setBusy(true);
    setError(null);
    try {
      if (challenge !== null) await adminSession.finishSignIn(challenge, proofOf(String(form.get("code"))));
      else if (setup) await adminSession.setUp({ token: setupToken, ...credentials });
      else {
        setChallenge(await adminSession.signIn(credentials));
        setBusy(false);
      }
    } catch (failure) {
      if (failure instanceof RequestError && failure.code === "invalid_challenge") setChallenge(null);
      setError(failure instanceof Error ? failure.message : String(failure));
      setBusy(false);
    }
  }

  if (challenge !== null) {
    return (
      <main className="sign-in">
        <form className="sign-in-form" key="code" onSubmit={(event) => void submit(event)}>
          <img src="./icon.svg" alt="" width="36" height="36" />
          <h1>Enter your code</h1>
          <TextField
            label="Code"
            name="code"
            autoComplete="one-time-code"
            required
            autoFocus
            hint="From your authenticator app, or one of your recovery codes."
          />
          {error !== null && <p className="field-error" role="alert">{error}</p>}
          <Button type="submit" tone="accent" disabled={busy}>Continue</Button>
          <Button tone="plain" onClick={() => setChallenge(null)}>Back</Button>
        </form>
      </main>
    );
  }

  return (
    <main className="sign-in">
      <form className="sign-in-form" onSubmit={(event) => void submit(event)}>
        <img src="./icon.svg" alt="" width="36" height="36" />
        <h1>{setup ? "Create the first administrator" : "Sign in to Syncline"}</h1>
        {setup && (
          <p className="quiet">
            This account manages the server. It can read and change everything.
          </p>
        )}
        {setupToken !== null && !needsSetup && known && (
          <p className="quiet" role="status">
            This setup link has already been used. Sign in with the existing administrator account.
          </p>
        )}
        {needsSetup && !setup && (
          <p className="quiet">
            There is no administrator yet. Open the setup link that the server printed when it started, or run
            {" "}
            <code>npx syncline admin create</code>.
          </p>
        )}
        {ended && error === null && <p className="quiet" role="status">Your session has ended.</p>}
        <TextField
          label="Email address"
          name="email"
          type="email"
          autoComplete={passkeys ? "username webauthn" : "username"}
          required
          autoFocus
        />
        <TextField
          label="Password"
          name="password"
          type="password"
          autoComplete={setup ? "new-password" : "current-password"}
          required
          {...(setup && { minLength: 8, maxLength: 256, hint: "At least 8 characters." })}
        />
        {error !== null && <p className="field-error" role="alert">{error}</p>}
        <Button type="submit" tone="accent" disabled={busy}>
          {setup ? "Create administrator" : "Sign in"}
        </Button>
        {passkeys && (
          <Button disabled={busy} onClick={() => void usePasskey()}>
            Sign in with a passkey
          </Button>
        )}
      </form>
    </main>
  );
}
