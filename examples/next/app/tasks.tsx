/** A client component: the preloaded list, live in the browser. */
"use client";
import { useState } from "react";
import { Authenticated, type Preloaded, Unauthenticated, useAuth, useMutation, usePreloadedQuery } from "syncline/react";
import { api } from "../functions/_generated.ts";

export function Tasks({ preloaded }: { preloaded: Preloaded<typeof api.tasks.list> }) {
  const tasks = usePreloadedQuery(preloaded);
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
      <Authenticated>
        <form action={(fields) => attempt(add({ text: String(fields.get("text")) }))}>
          <input name="text" aria-label="New task" required />
          <button type="submit">Add</button>
        </form>
      </Authenticated>
      <Unauthenticated>
        <form
          action={(fields) =>
            attempt(auth.signUp({ email: String(fields.get("email")), password: String(fields.get("password")) }))}
        >
          <input name="email" type="email" aria-label="Email" required />
          <input name="password" type="password" aria-label="Password" required />
          <button type="submit">Sign up</button>
        </form>
      </Unauthenticated>
      <p role="alert">{problem}</p>
      <ul>{tasks.map((task) => <li key={task._id}>{task.text}</li>)}</ul>
    </main>
  );
}
