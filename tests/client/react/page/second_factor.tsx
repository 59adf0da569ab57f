/** Scenario of a second factor, with the two steps of a sign-in, and then of a user without an account. */
import { useEffect } from "react";
import {
  type SecondFactorView,
  type SignInChallengeView,
  useAnonymousSignIn,
  useSecondFactor,
  useSignInChallenge,
} from "syncline/react/accounts";
import { mount, until } from "./support.tsx";

const STEP_MS = 30_000;

/** Steps in order. */
export async function secondFactor() {
  const { codeOf } = globalThis as unknown as { codeOf(secret: string, offMs: number): Promise<string> };
  const steps: string[] = [];
  let view: SignInChallengeView | null = null;
  let settings: SecondFactorView | null = null;
  let signInAnonymously = () => Promise.resolve();
  function App() {
    const signIn = useSignInChallenge();
    const factor = useSecondFactor();
    const anonymously = useAnonymousSignIn();
    useEffect(() => {
      signInAnonymously = anonymously;
      view = signIn;
      settings = factor;
    });
    return null;
  }
  const { client, end } = mount(<App />);
  await until(() => settings !== null && view !== null);
  const factor = () => settings as unknown as SecondFactorView;
  const signIn = () => view as unknown as SignInChallengeView;
  const credentials = { email: "factor@example.com", password: "correct horse" };
  await client.auth.signUp(credentials);
  await until(() => factor().factors?.totp === null);
  const { enrolmentId, secret } = await factor().startTotp({ password: credentials.password });
  const codes = await factor().confirmTotp({ enrolmentId, code: await codeOf(secret, -STEP_MS) });
  await until(() => factor().factors?.totp !== null && factor().factors?.recoveryCodes === codes.length);
  steps.push(`set up, ${codes.length} recovery codes`);

  await client.auth.signOut();
  const atOnce = await signIn().attempt(() => client.auth.signIn(credentials));
  await until(() => signIn().challenge !== null);
  await signIn().finish({ code: "abcdef" }).catch(({ code }) => steps.push(code));
  await signIn().finish({ code: await codeOf(secret, 0) });
  await until(() => signIn().challenge === null && client.authState().status === "signedIn");
  if (!atOnce) steps.push("signed in with a code");

  await factor().removeTotp();
  await until(() => factor().factors?.totp === null);
  steps.push("removed");
  await client.auth.signOut();
  if (await signIn().attempt(() => client.auth.signIn(credentials))) steps.push("signed in at once");
  await client.auth.signOut();
  await signInAnonymously();
  await until(() => client.authState().status === "signedIn");
  if ((await client.auth.account())?.anonymous) steps.push("signed in without an account");
  await client.auth.signOut();
  await end();
  return steps;
}
