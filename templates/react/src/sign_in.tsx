import { useState } from "react";
import { useAuth } from "syncline/react";

export function SignIn() {
  const { auth } = useAuth();
  const [problem, setProblem] = useState("");

  async function submit(fields: FormData, action: "signIn" | "signUp") {
    const [email, password] = [String(fields.get("email")), String(fields.get("password"))];
    try {
      await auth[action]({ email, password });
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  }

  return (
    <form>
      <input name="email" type="email" placeholder="Email" autoComplete="email" required />
      <input
        name="password"
        type="password"
        placeholder="Password"
        autoComplete="current-password"
        required
      />
      <button type="submit" formAction={(fields) => submit(fields, "signIn")}>Sign in</button>
      <button type="submit" formAction={(fields) => submit(fields, "signUp")}>Sign up</button>
      <p role="alert">{problem}</p>
    </form>
  );
}
