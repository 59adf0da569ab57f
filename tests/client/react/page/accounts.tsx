/** Scenario of signing in and out. */
import { useEffect } from "react";
import {
  Authenticated,
  AuthLoading,
  type AuthView,
  Unauthenticated,
  useAuth,
  useQuery,
} from "syncline/react";
import { api } from "./api.ts";
import { mount, until } from "./support.tsx";

/** What is shown while somebody signs up and out again. */
export async function signing() {
  const frames: string[] = [];
  let view: AuthView | null = null;
  function App() {
    const auth = useAuth();
    const me = useQuery(api.rows.me);
    useEffect(() => {
      view = auth;
    });
    return (
      <>
        <AuthLoading>loading</AuthLoading>
        <Authenticated>in {me === undefined || auth.userId !== me ? "as?" : "as me"}</Authenticated>
        <Unauthenticated>out</Unauthenticated>
      </>
    );
  }
  const { place, show, end } = mount(null);
  new MutationObserver(() => frames.push(place.textContent ?? "")).observe(place, {
    childList: true,
    characterData: true,
    subtree: true,
  });
  show(<App />);
  const see = (text: string) => until(() => place.textContent === text);
  await see("out");
  const auth = () => (view as AuthView | null)?.auth;
  await auth()?.signUp({ email: "ada@example.com", password: "correct horse" });
  await see("in as me");
  await auth()?.signOut();
  await see("out");
  await end();
  // The last frame is the empty page.
  frames.pop();
  return frames.filter((text, i) => text !== frames[i - 1]);
}
