/** The page: the sign-in form or the live list. Changes appear at once, and are taken back if the server refuses them. */
import { SynclineClient } from "/_/client.js";

const client = new SynclineClient(location.origin);
const find = (selector) => document.querySelector(selector);
const [signIn, add, list] = [find("#sign-in"), find("#add"), find("ul")];

/** Waits for a call and shows its error. Returns whether it succeeded. */
async function attempt(call) {
  find("p[role=alert]").textContent = "";
  try {
    await call;
    return true;
  } catch (error) {
    find("p[role=alert]").textContent = error.message;
    return false;
  }
}

/** Calls a mutation. `update` changes the list in this page until the server's result arrives. */
function change(mutation, args, update) {
  return attempt(client.mutation(mutation, args, {
    optimisticUpdate(store) {
      const tasks = store.getQuery("tasks:list", {});
      if (tasks !== undefined) store.setQuery("tasks:list", {}, update(tasks));
    },
  }));
}

function showTask({ _id: task, text, done }) {
  const item = find("template").content.cloneNode(true).firstElementChild;
  const [box, remove] = [item.querySelector("input"), item.querySelector("button")];
  item.id = task;
  item.querySelector("span").textContent = text;
  box.checked = done;
  remove.ariaLabel = `Remove ${text}`;
  // A task has its id when the server has stored it.
  box.disabled = remove.disabled = task === "";
  box.addEventListener("change", () => {
    const changed = (one) => one._id === task ? { ...one, done: !done } : one;
    void change("tasks:setDone", { task, done: !done }, (tasks) => tasks.map(changed));
  });
  remove.addEventListener("click", () => {
    void change("tasks:remove", { task }, (tasks) => tasks.filter(({ _id }) => _id !== task));
  });
  return item;
}

client.subscribe("tasks:list", {}, (tasks) => {
  find(".loading").hidden = true;
  find(".empty").hidden = tasks.length > 0;
  // The focused element is replaced too: focus the new one.
  const { tagName, parentElement } = document.activeElement ?? {};
  const focused = parentElement?.closest("li")?.id;
  list.replaceChildren(...tasks.map(showTask));
  if (focused) document.getElementById(focused)?.querySelector(tagName)?.focus();
}, (error) => find("p[role=alert]").textContent = error.message);

signIn.addEventListener("submit", (event) => {
  event.preventDefault();
  const { email, password } = Object.fromEntries(new FormData(signIn));
  void attempt(client.auth[event.submitter.value]({ email, password }));
});

add.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { text } = Object.fromEntries(new FormData(add));
  add.reset();
  const done = await change("tasks:add", { text }, (tasks) => [{ _id: "", text, done: false }, ...tasks]);
  if (!done) add.elements.text.value = text;
});

find("#sign-out").addEventListener("click", () => client.auth.signOut());

function showAuth({ status }) {
  signIn.hidden = status !== "signedOut";
  for (const each of [add, find("#tasks"), find("#sign-out")]) each.hidden = status !== "signedIn";
}
client.onAuthState(showAuth);
showAuth(client.authState());

function showConnection({ isConnected, hasEverConnected, inflightMutations }) {
  find(".saving").hidden = inflightMutations === 0;
  find(".offline").textContent = isConnected
    ? ""
    : hasEverConnected
    ? "Offline. Changes are sent later."
    : "Connecting…";
}
client.onConnectionState(showConnection);
showConnection(client.connectionState());
