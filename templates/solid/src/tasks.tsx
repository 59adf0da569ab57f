/** The list. Changes appear at once, and are taken back with a message if the server refuses them. */
import { createMemo, createSignal, For, Show } from "solid-js";
import type { OptimisticStore } from "syncline/client";
import { useMutation, useQuery } from "syncline/solid";
import { api } from "../functions/_generated.ts";
import type { Doc } from "../functions/schema.ts";

type Task = Doc<"tasks">;

/** Ids of tasks begin with this until the server has stored them. */
const UNSENT = "unsent";

export function Tasks() {
  const tasks = useQuery(api.tasks.list);
  /** `<For>` keeps the elements of equal ids. Given the tasks, it would create new elements for each changed one. */
  const byId = createMemo(() => new Map(tasks.data?.map((task) => [task._id, task])));
  const add = useMutation(api.tasks.add).withOptimisticUpdate((store, { text }) =>
    change(store, (tasks) => [
      { _id: `${UNSENT}${tasks.length}`, _creationTime: 0, text, done: false, by: "" } as Task,
      ...tasks,
    ])
  );
  const setDone = useMutation(api.tasks.setDone).withOptimisticUpdate((store, { task, done }) =>
    change(store, (tasks) => tasks.map((one) => one._id === task ? { ...one, done } : one))
  );
  const remove = useMutation(api.tasks.remove).withOptimisticUpdate((store, { task }) =>
    change(store, (tasks) => tasks.filter(({ _id }) => _id !== task))
  );
  const [text, setText] = createSignal("");
  const [problem, setProblem] = createSignal("");

  /** Waits for a call and shows its error. Returns whether it succeeded. */
  async function attempt(call: Promise<unknown>): Promise<boolean> {
    setProblem("");
    try {
      await call;
      return true;
    } catch (error) {
      setProblem((error as Error).message);
      return false;
    }
  }

  async function submit(event: SubmitEvent) {
    event.preventDefault();
    const added = text();
    setText("");
    if (!await attempt(add({ text: added }))) setText(added);
  }

  return (
    <>
      <form class="row" onSubmit={submit}>
        <input
          value={text()}
          onInput={(event) => setText(event.currentTarget.value)}
          aria-label="New task"
          placeholder="What needs to be done?"
          autocomplete="off"
          maxLength={200}
          required
        />
        <button type="submit" class="main">Add</button>
      </form>
      <p role="alert">{tasks.error?.message ?? problem()}</p>
      <Show when={tasks.isLoading}>
        <div class="loading" aria-label="Loading" />
      </Show>
      <Show when={tasks.data?.length === 0}>
        <p class="empty">Nothing to do. Add the first task above.</p>
      </Show>
      <ul>
        <For each={[...byId().keys()]}>
          {(id) => {
            const task = () => byId().get(id)!;
            return (
              <li>
                <label>
                  <input
                    type="checkbox"
                    checked={task().done}
                    disabled={id.startsWith(UNSENT)}
                    onChange={() => attempt(setDone({ task: id, done: !task().done }))}
                  />
                  <span>{task().text}</span>
                </label>
                <button
                  type="button"
                  class="remove"
                  aria-label={`Remove ${task().text}`}
                  disabled={id.startsWith(UNSENT)}
                  onClick={() => attempt(remove({ task: id }))}
                >
                  ×
                </button>
              </li>
            );
          }}
        </For>
      </ul>
    </>
  );
}

function change(store: OptimisticStore, update: (tasks: Task[]) => Task[]) {
  const tasks = store.getQuery(api.tasks.list, {});
  if (tasks !== undefined) store.setQuery(api.tasks.list, {}, update(tasks));
}
