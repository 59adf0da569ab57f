/** The todo page: signing in, lists, and the items of the list that is open. */
import { signInAnonymously } from "syncline/accounts";
import { SynclineClient } from "syncline/client";
import { button, providerName, showAccount } from "./account.js";
import { ItemList } from "./item_list.js";
import { Pages } from "./pages.js";
import { offerPasskeys } from "./passkeys.js";
import { secondStep } from "./second_factor.js";
import { invitation, shareList } from "./sharing.js";
import { uploadFile } from "./upload_file.js";
import { openFile } from "./viewer.js";

const client = new SynclineClient(location.origin);
const byId = (id) => document.getElementById(id);

// Signing in. `client.auth` keeps the tokens; the page only shows who is there.

const signIn = byId("sign-in");
const askForFactor = secondStep(client, { firstStep: signIn, form: byId("second-step") });
const offerPasskey = offerPasskeys(client, {
  opener: byId("passkey-sign-in"),
  onError: (error) => showText("sign-in-problem", error?.message ?? ""),
});
let creating = false;

function setCreating(wanted) {
  creating = wanted;
  signIn.querySelector("[type=submit]").textContent = creating ? "Create account" : "Sign in";
  signIn.elements.password.autocomplete = creating ? "new-password" : "current-password";
  byId("switch-mode").textContent = creating ? "You have an account? Sign in" : "New here? Create an account";
}

byId("switch-mode").addEventListener("click", () => {
  setCreating(!creating);
  showText("sign-in-problem", "");
});

signIn.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { email, password } = Object.fromEntries(new FormData(signIn));
  showText("sign-in-problem", "");
  signIn.inert = true;
  try {
    if (!creating) await client.auth.signIn({ email, password });
    else if ((await client.auth.signUp({ email, password })).verificationRequired) {
      showText("sign-in-problem", "Almost there: follow the link in the mail we sent you, then sign in.");
    }
  } catch (error) {
    if (!askForFactor(error)) showText("sign-in-problem", error.message);
  } finally {
    signIn.inert = false;
  }
});

// Sign-in with the providers that the server lists. Their window returns to this page, which then closes it. Refusals are shown
// in every tab.

client.auth.onRefusal((error) => {
  const { message } = error;
  if (!askForFactor(error)) {
    showText(document.body.dataset.view === "app" ? "problem" : "sign-in-problem", message);
  }
});
client.auth.completeRedirect().then(({ type, token }) => {
  // The link was not asked for in this browser: it may be someone else's.
  if (type === "magicLink" && confirm("Sign in with the link from your email?")) {
    return client.auth.signInWithMagic({ token });
  }
}).catch((error) => {
  // Errors in the page's address were already reported to `onRefusal`.
  const reported = error.name === "AccountError" && error.status === 0;
  if (!reported && !askForFactor(error)) {
    showText("sign-in-problem", error.message);
  }
});
const providers = client.auth.signInWays().then(({ oauth, anonymous }) => {
  byId("try").hidden = !anonymous;
  byId("providers").replaceChildren(
    ...oauth.map((provider) => button(`Sign in with ${providerName(provider)}`, () => signInWith(provider))),
  );
  return oauth;
}, () => []);

// A user without an account has lists like any other, and keeps them when adding a passkey or linking an account.
byId("try").addEventListener("click", () => {
  showText("sign-in-problem", "");
  signInAnonymously(client).catch(({ message }) => showText("sign-in-problem", message));
});

async function signInWith(provider) {
  showText("sign-in-problem", "");
  try {
    await client.auth.signInWithPopup(provider);
  } catch (error) {
    if (error.code === "popup_blocked") client.auth.signInWithOAuth(provider);
    else if (error.code !== "popup_closed" && !askForFactor(error)) {
      showText("sign-in-problem", error.message);
    }
  }
}

let endAccount = () => {};

function startAccount() {
  endAccount();
  endAccount = showAccount({ opener: byId("me"), dialog: byId("account") }, {
    client,
    providers,
    async attempt(call) {
      const problem = await call.then(() => "", (error) => error.message);
      showText("account-problem", problem);
    },
  });
}

byId("sign-out").addEventListener("click", () => client.auth.signOut().catch(showProblem));

let endLists = () => {};

function showWho({ status }) {
  const view = status === "signedIn" ? "app" : status === "signedOut" ? "welcome" : "loading";
  if (document.body.dataset.view === view) return;
  document.body.dataset.view = view;
  endLists();
  endAccount();
  endAccount = () => {};
  lists = [];
  signIn.reset();
  setCreating(false);
  showProblem(null);
  openList(null);
  offerPasskey();
  if (view !== "app") return;
  showText("sign-in-problem", "");
  startAccount();
  joinIfInvited();
  endLists = client.subscribe("lists:mine", {}, (mine) => {
    lists = mine;
    showLists();
  }, showProblem);
}

// Lists: the address of the page says which one is open.

let lists = [];
/** By list: its entry, and how to end the subscription to its count. */
const counts = new Map();
let openId = null;

function showLists() {
  for (const [id, { end }] of counts) {
    if (lists.some(({ _id }) => _id === id)) continue;
    end();
    counts.delete(id);
  }
  const shown = new Map([...byId("lists").children].map((item) => [item.dataset.id, item]));
  byId("lists").replaceChildren(...lists.map((list) => shown.get(list._id) ?? listEntry(list)));
  for (const { _id, isShared } of lists) counts.get(_id).entry.classList.toggle("shared", isShared);
  byId("no-list").hidden = lists.length > 0;
  const wanted = decodeURIComponent(location.hash.slice(1));
  openList((lists.find(({ _id }) => _id === wanted) ?? lists[0])?._id ?? null);
}

function listEntry({ _id, title }) {
  const link = Object.assign(document.createElement("a"), { href: `#${_id}` });
  const name = Object.assign(document.createElement("span"), { textContent: title });
  const count = Object.assign(document.createElement("span"), { className: "count" });
  link.append(name, count);
  const entry = document.createElement("li");
  entry.dataset.id = _id;
  entry.append(link);
  const show = (open) => {
    count.textContent = open === 0 ? "" : open > 99 ? "99+" : String(open);
    count.setAttribute("aria-label", `${open} open`);
  };
  counts.set(_id, { entry, end: client.subscribe("items:openCount", { list: _id }, show, showProblem) });
  return entry;
}

globalThis.addEventListener("hashchange", () => {
  joinIfInvited();
  showLists();
});

/** Follows an invitation link, if necessary after signing in. */
async function joinIfInvited() {
  const invite = invitation();
  if (invite === null || document.body.dataset.view !== "app") return;
  const list = await attempt(client.mutation("sharing:join", { invite }));
  location.hash = list ?? "";
}

byId("new-list").addEventListener("submit", async (event) => {
  event.preventDefault();
  const input = byId("list-title");
  const list = await attempt(client.mutation("lists:create", { title: input.value }));
  if (list === undefined) return;
  input.value = "";
  location.hash = list;
  byId("item-text").focus();
});

byId("share-list").addEventListener("click", () => {
  shareList(byId("share"), { client, list: openId, attempt });
});

byId("leave-list").addEventListener(
  "click",
  () => attempt(client.mutation("sharing:leave", { list: openId })),
);

byId("remove-list").addEventListener("click", () => {
  const { title } = lists.find(({ _id }) => _id === openId) ?? {};
  if (confirm(`Delete the list "${title}" and everything in it?`)) {
    attempt(client.mutation("lists:remove", { list: openId }));
  }
});

// Items: of the open list in live pages, or those a search finds.

const items = new ItemList(byId("items"), {
  toggle: (item, done) => attempt(client.mutation("items:setDone", { item: item._id, done })),
  edit: (item, text) => attempt(client.mutation("items:edit", { item: item._id, text })),
  remove: (item) => attempt(client.mutation("items:remove", { item: item._id })),
  upload: attachFile,
  files: {
    link: linkTo,
    open: (file) => attempt(openFile(byId("viewer"), file, linkTo)),
    remove: (file) => attempt(client.mutation("attachments:remove", { attachment: file._id })),
  },
});

/** An address of a file's contents. It works for some minutes only, so it is asked for when it is needed. */
function linkTo(file) {
  return client.query("attachments:link", { attachment: file._id });
}

/** Uploads a file and attaches it. */
async function attachFile({ _id: item }, file, options) {
  const url = await client.mutation("attachments:uploadUrl", { item });
  const stored = await uploadFile(client, { url, file, ...options });
  if (!await client.mutation("attachments:add", { item, file: stored })) {
    throw new Error("The item has become full in the meantime");
  }
}

const nothing = {
  all: "Nothing here yet. What comes first?",
  open: "All done. Enjoy the quiet.",
  done: "Nothing is done yet. One thing at a time.",
  search: "No item has these words.",
};

let show = "all";
let pages = null;
let endSearch = () => {};

function openList(id) {
  byId("list").hidden = id === null;
  const { isMine = false } = lists.find(({ _id }) => _id === id) ?? {};
  byId("share-list").hidden = byId("remove-list").hidden = !isMine;
  byId("leave-list").hidden = isMine;
  for (const entry of byId("lists").children) {
    const link = entry.firstElementChild;
    if (entry.dataset.id === id) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (id === openId && id !== null) return;
  openId = id;
  byId("search").value = "";
  showItems();
}

/** Subscribes to the search if there is one, otherwise to the open list. */
function showItems() {
  pages?.close();
  pages = null;
  endSearch();
  endSearch = () => {};
  items.clear();
  byId("more").hidden = true;
  byId("nothing").hidden = true;
  const words = byId("search").value.trim();
  const list = lists.find(({ _id }) => _id === openId);
  const title = words !== "" ? "Search" : list?.title ?? "Lists";
  byId("title").textContent = title;
  document.title = list === undefined ? "Syncline todo" : `${title} · Syncline todo`;
  byId("list").hidden = words !== "" || list === undefined;
  if (words !== "") {
    endSearch = client.subscribe("items:search", { text: words }, (found) => {
      items.show(found);
      showText("nothing", found.length === 0 ? nothing.search : "");
    }, showProblem);
  } else if (list !== undefined) {
    pages = new Pages(client, {
      query: "items:page",
      args: { list: openId, show },
      onItems(all, hasMore) {
        items.show(all);
        byId("more").hidden = !hasMore;
        showText("nothing", all.length === 0 ? nothing[show] : "");
      },
      onError: showProblem,
    });
  }
}

byId("search").addEventListener("input", showItems);
byId("more").addEventListener("click", () => pages?.more());

for (const button of document.querySelectorAll("[data-show]")) {
  button.addEventListener("click", () => {
    show = button.dataset.show;
    for (const other of document.querySelectorAll("[data-show]")) {
      other.setAttribute("aria-pressed", String(other === button));
    }
    showItems();
  });
}

byId("new-item").addEventListener("submit", async (event) => {
  event.preventDefault();
  const [text, due] = [byId("item-text"), byId("item-due")];
  const written = { text: text.value, due: due.value };
  text.value = "";
  due.value = "";
  text.focus();
  const args = { list: openId, text: written.text, ...written.due !== "" && { due: written.due } };
  const added = await attempt(client.mutation("items:add", args));
  // Restore the rejected text unless the user has typed a new one.
  if (added === undefined && text.value === "") [text.value, due.value] = [written.text, written.due];
});

// Errors and the state of the connection.

async function attempt(call) {
  try {
    const result = await call;
    showProblem(null);
    return result;
  } catch (error) {
    showProblem(error);
    return undefined;
  }
}

function showProblem(error) {
  // A list that was just removed, here or elsewhere, is no problem; its subscriptions end with it.
  if (error?.code === "no_list" || error?.code === "signed_out") return;
  showText("problem", error?.message ?? "");
}

function showText(id, text) {
  byId(id).textContent = text;
  byId(id).hidden = text === "";
}

client.onConnectionState(({ isConnected, hasEverConnected }) => {
  const connection = byId("connection");
  connection.dataset.phase = isConnected ? "live" : hasEverConnected ? "offline" : "connecting";
  connection.textContent = isConnected
    ? "Live"
    : hasEverConnected
    ? "Offline: changes are kept"
    : "Connecting…";
});

showWho(client.authState());
client.onAuthState(showWho);
