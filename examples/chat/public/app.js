/** The chat page: joins the client with the parts of the page. */
import { SynclineClient } from "syncline/client";
import { showConnection } from "./connection.js";
import { MessageList, paintAvatar } from "./message_list.js";

const DEFAULT_CHANNELS = ["general", "random"];
const MESSAGES_SHOWN = 50;

const client = new SynclineClient(location.origin);

const byId = (id) => document.getElementById(id);
const composer = byId("composer");
const body = byId("body");
const myName = byId("my-name");
const problem = byId("problem");

const messages = new MessageList({
  list: byId("messages"),
  scroller: byId("scroller"),
  empty: byId("empty"),
  newer: byId("newer"),
});

showConnection(client, { text: byId("connection"), retry: byId("reconnect") });

// Channels: the address of the page says which one is open.

let channel = "";
let channels = DEFAULT_CHANNELS;
let unsubscribe = () => {};

function openChannel() {
  const name = decodeURIComponent(location.hash.slice(1)) || "general";
  if (name === channel) return;
  channel = name;
  byId("channel-title").textContent = channel;
  document.title = `#${channel} · Syncline chat`;
  showChannels();
  unsubscribe();
  messages.clear();
  unsubscribe = client.subscribe(
    "messages:list",
    { channel },
    (newestFirst) => messages.show(newestFirst.toReversed()),
    (error) => showProblem(`Cannot read the messages: ${error.message}`),
  );
}

function showChannels() {
  const items = [...new Set([...DEFAULT_CHANNELS, ...channels, channel])].map((name) => {
    const link = document.createElement("a");
    link.href = `#${encodeURIComponent(name)}`;
    link.textContent = name;
    if (name === channel) link.setAttribute("aria-current", "page");
    const item = document.createElement("li");
    item.append(link);
    return item;
  });
  byId("channels").replaceChildren(...items);
}

globalThis.addEventListener("hashchange", openChannel);
openChannel();

client.subscribe("channels:list", {}, (names) => {
  channels = names;
  showChannels();
}, (error) => showProblem(`Cannot read the channels: ${error.message}`));

byId("new-channel").addEventListener("submit", async (event) => {
  event.preventDefault();
  const input = byId("channel-name");
  try {
    const name = await client.mutation("channels:create", { name: input.value });
    input.value = "";
    showProblem("");
    location.hash = encodeURIComponent(name);
  } catch (error) {
    showProblem(error.message);
  }
});

// Messages: shown at once, before the server has them; offline they wait and are sent later, exactly once.

let localMessages = 0;

async function send(text) {
  const message = { channel, name: myName.value.trim(), body: text };
  const local = { ...message, _id: `local-${++localMessages}`, _creationTime: Date.now(), pending: true };
  messages.follow();
  try {
    await client.mutation("messages:send", message, {
      optimisticUpdate(store) {
        const shown = store.getQuery("messages:list", { channel: message.channel });
        if (shown === undefined) return;
        const next = [local, ...shown].slice(0, MESSAGES_SHOWN);
        store.setQuery("messages:list", { channel: message.channel }, next);
      },
    });
    showProblem("");
  } catch (error) {
    showProblem(error.message);
    // What was written is not lost: it goes back to where it came from, unless something new stands there.
    if (body.value === "") body.value = text;
    if (error.code === "no_name") myName.focus();
  }
}

composer.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = body.value.trim();
  if (text === "") return;
  body.value = "";
  body.focus();
  send(text);
});

body.addEventListener("keydown", (event) => {
  // While a word is being composed, Enter belongs to the input method.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  composer.requestSubmit();
});

function showProblem(text) {
  problem.textContent = text;
  problem.hidden = text === "";
}

// The name: kept in this browser.

myName.value = storedName() ?? `Guest ${100 + Math.floor(Math.random() * 900)}`;
const showMyName = () => {
  messages.owner = myName.value.trim();
  paintAvatar(byId("my-avatar"), myName.value.trim());
};
showMyName();
myName.addEventListener("input", () => {
  showMyName();
  try {
    localStorage.setItem("chat-name", myName.value);
  } catch {
    // Without storage the name lasts as long as the page.
  }
});

function storedName() {
  try {
    return localStorage.getItem("chat-name");
  } catch {
    return null;
  }
}
