/** Sign-in and sign-up with an email address and a password. */
import { createSignal } from "solid-js";
import { useAuth } from "syncline/solid";

export function SignIn() {
  const { auth } = useAuth();
  const [problem, setProblem] = createSignal("");

  async function submit(event: SubmitEvent & { readonly currentTarget: HTMLFormElement }) {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const credentials = { email: String(fields.get("email")), password: String(fields.get("password")) };
    const isNew = event.submitter?.getAttribute("value") === "signUp";
    setProblem("");
    try {
      await auth[isNew ? "signUp" : "signIn"](credentials);
    } catch (error) {
      setProblem((error as Error).message);
    }
  }

  return (
    <form class="card" onSubmit={submit}>
      <h2>Welcome</h2>
      <label class="field">
        Email <input name="email" type="email" autocomplete="email" required />
      </label>
      <label class="field">
        Password
        <input
          name="password"
          type="password"
          autocomplete="current-password"
          minLength={8}
          required
        />
      </label>
      <div class="row">
        <button type="submit" class="main" value="signIn">Sign in</button>
        <button type="submit" value="signUp">Sign up</button>
      </div>
      <p role="alert">{problem()}</p>
    </form>
  );
}
