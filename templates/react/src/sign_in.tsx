/** Sign-in and sign-up with email and password. */
import { useActionState } from "react";
import { useAuth } from "syncline/react";

export function SignIn() {
  const { auth } = useAuth();
  const [{ email, message }, submit, isPending] = useActionState(async (_: unknown, fields: FormData) => {
    const [email, password] = [String(fields.get("email")), String(fields.get("password"))];
    try {
      if (fields.get("intent") === "signIn") await auth.signIn({ email, password });
      else if ((await auth.signUp({ email, password })).verificationRequired) {
        return { email, message: "Open the link in the mail that we have sent you" };
      }
      return { email, message: "" };
    } catch (error) {
      return { email, message: error instanceof Error ? error.message : String(error) };
    }
  }, { email: "", message: "" });

  return (
    <form className="card" action={submit}>
      <h2>Welcome</h2>
      <label>
        Email
        <input name="email" type="email" autoComplete="email" defaultValue={email} required />
      </label>
      <label>
        Password
        <input name="password" type="password" autoComplete="current-password" minLength={8} required />
      </label>
      <p role="alert">{message}</p>
      <div className="row">
        <button type="submit" className="main" name="intent" value="signIn" disabled={isPending}>
          Sign in
        </button>
        <button type="submit" name="intent" value="signUp" disabled={isPending}>Sign up</button>
      </div>
    </form>
  );
}
