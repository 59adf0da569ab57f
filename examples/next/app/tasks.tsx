/** A client component: the preloaded results, live in the browser. */
"use client";
import { useState } from "react";
import type { ownAccount } from "syncline/client";
import { type Preloaded, useAuth, useMutation, usePreloadedQuery } from "syncline/react";
import { api } from "../functions/_generated.ts";

interface Props {
  tasks: Preloaded<typeof api.tasks.list>;
  account: Preloaded<typeof ownAccount>;
}

export function Tasks(props: Props) {
  const tasks = usePreloadedQuery(props.tasks);
  const account = usePreloadedQuery(props.account);
  const add = useMutation(api.tasks.add);
  const { auth } = useAuth();
  const [problem, setProblem] = useState("");
  const attempt = (call: Promise<unknown>) => {
    setProblem("");
    return call.then(() => {}, (error: Error) => setProblem(error.message));
  };
  return (
    <main>
      <h1>Tasks</h1>
      {account === null
        ? (
          <form
            action={(fields) =>
              attempt(
                auth.signUp({ email: String(fields.get("email")), password: String(fields.get("password")) }),
              )}
          >
            <input name="email" type="email" aria-label="Email" required />
            <input name="password" type="password" aria-label="Password" required />
            <button type="submit">Sign up</button>
          </form>
        )
        : (
          <>
            <p>
              Signed in as {account.email}
              <button type="button" onClick={() => auth.signOut()}>Sign out</button>
            </p>
            <form action={(fields) => attempt(add({ text: String(fields.get("text")) }))}>
              <input name="text" aria-label="New task" required />
              <button type="submit">Add</button>
            </form>
          </>
        )}
      <p role="alert">{problem}</p>
      <ul>{tasks.map((task) => <li key={task._id}>{task.text}</li>)}</ul>
    </main>
  );
}
