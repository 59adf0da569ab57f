/** The list. Changes appear at once, and are taken back with a message if the server refuses them. */
import { useState } from "react";
import type { OptimisticStore } from "syncline/client";
import { useMutation, useQuery } from "syncline/react";
import type { Id } from "syncline/server";
import { api } from "../functions/_generated.ts";
import type { Doc } from "../functions/schema.ts";

type Task = Doc<"tasks">;

export function Tasks() {
  const tasks = useQuery(api.tasks.list);
  const add = useMutation(api.tasks.add).withOptimisticUpdate(addNow);
  const setDone = useMutation(api.tasks.setDone).withOptimisticUpdate(setDoneNow);
  const remove = useMutation(api.tasks.remove).withOptimisticUpdate(removeNow);
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");

  function attempt(call: Promise<unknown>, undo?: () => void) {
    setProblem("");
    call.catch((error: Error) => {
      setProblem(error.message);
      undo?.();
    });
  }

  function submit() {
    setText("");
    attempt(add({ text }), () => setText(text));
  }

  return (
    <>
      <form className="row" action={submit}>
        <input
          aria-label="New task"
          placeholder="What needs to be done?"
          value={text}
          onChange={(event) => setText(event.target.value)}
          autoComplete="off"
          maxLength={200}
          required
        />
        <button type="submit" className="main">Add</button>
      </form>
      <p role="alert">{problem}</p>
      {tasks === undefined && <div className="loading" aria-label="Loading" />}
      {tasks?.length === 0 && <p className="empty">Nothing to do. Add the first task above.</p>}
      <ul>
        {tasks?.map(({ _id, text, done }) => (
          <li key={_id}>
            <label>
              <input
                type="checkbox"
                checked={done}
                disabled={_id.startsWith(UNSENT)}
                onChange={() => attempt(setDone({ task: _id, done: !done }))}
              />
              <span>{text}</span>
            </label>
            <button
              type="button"
              className="remove"
              aria-label={`Remove ${text}`}
              disabled={_id.startsWith(UNSENT)}
              onClick={() => attempt(remove({ task: _id }))}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

/** Ids of tasks begin with this until the server has stored them. */
const UNSENT = "unsent";

function addNow(store: OptimisticStore, { text }: { text: string }) {
  change(store, (tasks) => [
    { _id: `${UNSENT}${tasks.length}`, _creationTime: 0, text, done: false, by: "" } as Task,
    ...tasks,
  ]);
}

function setDoneNow(store: OptimisticStore, { task, done }: { task: Id<"tasks">; done: boolean }) {
  change(store, (tasks) => tasks.map((one) => one._id === task ? { ...one, done } : one));
}

function removeNow(store: OptimisticStore, { task }: { task: Id<"tasks"> }) {
  change(store, (tasks) => tasks.filter(({ _id }) => _id !== task));
}

function change(store: OptimisticStore, update: (tasks: Task[]) => Task[]) {
  const tasks = store.getQuery(api.tasks.list, {});
  if (tasks !== undefined) store.setQuery(api.tasks.list, {}, update(tasks));
}
