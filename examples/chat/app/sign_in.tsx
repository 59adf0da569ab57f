/** The dialog for signing in and for creating an account. */
import { type RefObject, useId, useState } from "react";
import { useAuth } from "syncline/react";

interface SignInProps {
  readonly dialog: RefObject<HTMLDialogElement | null>;
  /** Name of a new account. */
  readonly guestName: string;
}

export function SignIn({ dialog, guestName }: SignInProps) {
  const { auth } = useAuth();
  const [isNew, setIsNew] = useState(false);
  const [isBusy, setIsBusy] = useState(false);
  const [notice, setNotice] = useState<{ readonly isProblem: boolean; readonly text: string } | null>(null);
  const title = useId();

  const submit = async (fields: FormData) => {
    const [email, password] = ["email", "password"].map((name) => String(fields.get(name)));
    if (email === undefined || password === undefined) return;
    setIsBusy(true);
    setNotice(null);
    try {
      if (!isNew) await auth.signIn({ email, password });
      else if ((await auth.signUp({ email, password, name: guestName.trim() })).verificationRequired) {
        setNotice({ isProblem: false, text: "Follow the link in the mail you get, then sign in." });
        setIsNew(false);
      }
    } catch (error) {
      setNotice({ isProblem: true, text: error instanceof Error ? error.message : String(error) });
    } finally {
      setIsBusy(false);
    }
  };

  return (
    <dialog ref={dialog} className="sign-in" aria-labelledby={title}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit(new FormData(event.currentTarget));
        }}
      >
        <h2 id={title}>{isNew ? "Create an account" : "Sign in"}</h2>
        <p className="hint">
          {isNew
            ? `Others will see you as ${guestName.trim() || "Guest"}.`
            : "With an account your messages carry a mark that no guest can have."}
        </p>
        <label>
          Email address
          <input name="email" type="email" autoComplete="email" required />
        </label>
        <label>
          Password
          <input
            name="password"
            type="password"
            autoComplete={isNew ? "new-password" : "current-password"}
            minLength={isNew ? 8 : undefined}
            required
          />
        </label>
        {notice !== null && (
          <p className={notice.isProblem ? "problem" : "notice"} role="alert">{notice.text}</p>
        )}
        <div className="buttons">
          <button type="submit" className="button" disabled={isBusy}>
            {isNew ? "Create account" : "Sign in"}
          </button>
          <button type="button" className="quiet" onClick={() => dialog.current?.close()}>
            Stay a guest
          </button>
        </div>
        <button
          type="button"
          className="link"
          onClick={() => {
            setIsNew(!isNew);
            setNotice(null);
          }}
        >
          {isNew ? "I have an account" : "I have no account yet"}
        </button>
      </form>
    </dialog>
  );
}
