/** Scenarios of signing in and out. */
import { useEffect } from "react";
import { SynclineClient } from "syncline/client";
import {
  Authenticated,
  AuthLoading,
  type AuthView,
  Unauthenticated,
  useAuth,
  useQuery,
  useSyncline,
} from "syncline/react";
import { api } from "./api.ts";
import { mount, until } from "./support.tsx";

/** Frames rendered while a user signs up and out again. */
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

/** Frames of an app that signs in with its own tokens in an effect, while another user is signed in with an account. */
export async function ownTokens() {
  const elsewhere = new SynclineClient(location.origin);
  await elsewhere.auth.signUp({ email: "own@example.com", password: "correct horse" });
  const stored = Object.entries(localStorage).find(([key]) => key.startsWith("syncline-auth"));
  const token: string = JSON.parse(stored?.[1] ?? "null").accessToken;
  localStorage.clear();
  elsewhere.close();
  const other = new SynclineClient(location.origin);
  await other.auth.signUp({ email: "other@example.com", password: "correct horse" });
  const otherId = (await other.auth.account())?.userId;
  other.close();

  const frames: string[] = [];
  const shown = new Set<unknown>();
  function App({ isSignedIn }: { readonly isSignedIn: boolean }) {
    const client = useSyncline();
    const { status, userId } = useAuth();
    const me = useQuery(api.rows.me);
    shown.add(me).add(userId);
    useEffect(() => {
      if (!isSignedIn) return;
      client.setAuth(() => Promise.resolve(token));
      return () => client.clearAuth();
    }, [client, isSignedIn]);
    return (
      <>
        <AuthLoading>loading</AuthLoading>
        <Authenticated>in as {status === "signedIn" && typeof me === "string" ? "me" : "?"}</Authenticated>
        <Unauthenticated>{me === undefined ? "" : "out"}</Unauthenticated>
      </>
    );
  }
  const { client, place, show, end } = mount(null);
  client.clearAuth();
  new MutationObserver(() => frames.push(place.textContent ?? "")).observe(place, {
    childList: true,
    characterData: true,
    subtree: true,
  });
  const see = (text: string) => until(() => place.textContent === text);
  show(<App isSignedIn={false} />);
  await see("out");
  show(<App isSignedIn />);
  await see("in as me");
  show(<App isSignedIn={false} />);
  await see("out");
  await end();
  localStorage.clear();
  return {
    frames: frames.filter((text) => text !== "").filter((text, i, all) => text !== all[i - 1]),
    sawOther: shown.has(otherId),
  };
}
