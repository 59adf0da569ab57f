/** The signed-in user, with picture and sign-in methods. */
import { ownAccount, ownIdentities } from "syncline/client";
import { showPasskeys } from "./passkeys.js";
import { showFactors } from "./second_factor.js";

export const providerName = (provider) => `${provider[0].toUpperCase()}${provider.slice(1)}`;

/** Keeps a dialog's content, and what opens it, true to the account. `providers` is a promise. Returns how to end that. */
export function showAccount({ opener, dialog }, { client, providers, attempt }) {
  const [picture, name] = opener.children;
  const list = dialog.querySelector("ul");
  const more = dialog.querySelector(".providers");
  dialog.querySelector("[data-act=close]").onclick = () => dialog.close();
  opener.onclick = () => dialog.showModal();

  let isAnonymous = false;
  let hasPassword = false;
  let isLinked = true;
  const showNote = () => {
    dialog.querySelector(".anonymous").hidden = !isAnonymous;
    dialog.querySelector(".muted").hidden = !hasPassword || isLinked;
    dialog.querySelector(".factors").hidden = isAnonymous;
  };
  const endAccount = client.subscribe(ownAccount, {}, (account) => {
    name.textContent = account?.name ?? account?.email ??
      (account?.anonymous ? "No account yet" : "Your account");
    isAnonymous = account?.anonymous ?? false;
    hasPassword = account?.hasPassword ?? false;
    showNote();
    const source = account?.profile?.picture;
    picture.hidden = source === undefined;
    if (source !== undefined) picture.src = source;
  }, () => {});

  const endIdentities = client.subscribe(ownIdentities, {}, (identities) => {
    list.replaceChildren(...identities.map(({ identityId, provider, email }) => {
      const entry = document.createElement("li");
      const label = document.createElement("span");
      label.textContent = [providerName(provider ?? "token"), email].filter(Boolean).join(", ");
      entry.append(label, button("Unlink", () => attempt(client.auth.unlinkIdentity(identityId))));
      return entry;
    }));
    const linked = new Set(identities.map(({ provider }) => provider));
    providers.then((all) =>
      more.replaceChildren(
        ...all.filter((provider) => !linked.has(provider)).map((provider) =>
          button(`Link ${providerName(provider)}`, () => attempt(client.auth.linkIdentity(provider)))
        ),
      )
    );
    isLinked = identities.length > 0;
    showNote();
  }, () => {});

  const endFactors = showFactors(client, dialog.querySelector(".factors"));
  const endPasskeys = showPasskeys(client, dialog.querySelector(".passkeys"));

  return () => {
    endPasskeys();
    endFactors();
    endAccount();
    endIdentities();
    dialog.close();
  };
}

/** A quiet button with a text. */
export function button(text, onClick) {
  const made = Object.assign(document.createElement("button"), { type: "button", className: "quiet" });
  made.textContent = text;
  made.addEventListener("click", onClick);
  return made;
}
