import { useAuth, useMutation, useQuery } from "syncline/react";
import { api } from "../functions/_generated.ts";

export function Tasks() {
  const { auth } = useAuth();
  const tasks = useQuery(api.tasks.list);
  const add = useMutation(api.tasks.add);
  const setDone = useMutation(api.tasks.setDone);

  return (
    <main>
      <form action={async (fields) => void await add({ text: String(fields.get("text")) })}>
        <input name="text" placeholder="What needs to be done?" autoComplete="off" required maxLength={200} />
        <button type="submit">Add</button>
      </form>
      <ul>
        {tasks?.map(({ _id, text, done }) => (
          <li key={_id}>
            <label>
              <input
                type="checkbox"
                checked={done}
                onChange={() => void setDone({ task: _id, done: !done })}
              />
              {text}
            </label>
          </li>
        ))}
      </ul>
      <button type="button" onClick={() => void auth.signOut()}>Sign out</button>
    </main>
  );
}
