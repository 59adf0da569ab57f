import { SynclineClient } from "/_/client.js";

const client = new SynclineClient(location.origin);
const find = (selector) => document.querySelector(selector);
const [signIn, main, add] = [find("#sign-in"), find("main"), find("#add")];

function show({ status }) {
  signIn.hidden = status !== "signedOut";
  main.hidden = status !== "signedIn";
}
client.onAuthState(show);
show(client.authState());

signIn.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { email, password } = Object.fromEntries(new FormData(signIn));
  try {
    await client.auth[event.submitter.value]({ email, password });
  } catch (error) {
    find("[role=alert]").textContent = error.message;
  }
});

add.addEventListener("submit", async (event) => {
  event.preventDefault();
  await client.mutation("tasks:add", Object.fromEntries(new FormData(add)));
  add.reset();
});

find("#sign-out").addEventListener("click", () => client.auth.signOut());

client.subscribe("tasks:list", {}, (tasks) => {
  find("ul").replaceChildren(...tasks.map(({ _id, text, done }) => {
    const [item, label, box] = ["li", "label", "input"].map((tag) => document.createElement(tag));
    Object.assign(box, { type: "checkbox", checked: done });
    box.addEventListener("change", () => client.mutation("tasks:setDone", { task: _id, done: box.checked }));
    label.append(box, text);
    item.append(label);
    return item;
  }));
});
