/** Passkeys: the sign-in with one, and those of the signed-in account. */
import {
  addPasskey,
  ownPasskeys,
  proofOf,
  proveFactor,
  provePasskey,
  removePasskey,
  renamePasskey,
  signInWithPasskey,
  supportsPasskeys,
} from "syncline/accounts";
import { ownAccount } from "syncline/client";
import { button } from "./account.js";
import { oneField, showProblem, text } from "./second_factor.js";

/** Shows the button of the sign-in form and offers passkeys in its field. Returns a function that offers them again. */
export function offerPasskeys(client, { opener, onError }) {
  /** Canceled prompts need no message. */
  const report = (error) => {
    if (error.name !== "AbortError" && error.name !== "NotAllowedError") onError(error);
  };
  supportsPasskeys().then((supported) => opener.hidden = !supported);
  opener.addEventListener("click", () => {
    onError(null);
    signInWithPasskey(client).catch(report).finally(offer);
  });
  async function offer() {
    if (document.body.dataset.view !== "welcome" || !await supportsPasskeys({ autofill: true })) return;
    await signInWithPasskey(client, { autofill: true }).catch(report);
  }
  return offer;
}

/** Shows the passkeys of the account in the settings, live. Returns a function that ends the updates. */
export function showPasskeys(client, section) {
  const problem = section.querySelector(".problem");
  const list = section.querySelector("ul");
  const content = section.querySelector("div");
  let hasPassword = false;
  let passkeys = [];

  /** Runs a change. Asks for the password or for a proof first if the server requires one. Canceled prompts need no message. */
  async function attempt(work) {
    showProblem(problem, "");
    try {
      await work();
      render();
    } catch (error) {
      if (error.code === "factor_required") askForProof(work);
      else if (error.name !== "NotAllowedError") showProblem(problem, error.message);
    }
  }

  function askForProof(work) {
    content.replaceChildren(
      text("Confirm that it is you first."),
      ...passkeys.length === 0 ? [] : [
        button("Use a passkey", () =>
          attempt(async () => {
            await provePasskey(client);
            await work();
          })),
      ],
      oneField("Code of your app, or a recovery code", "Continue", (code) =>
        attempt(async () => {
          await proveFactor(client, proofOf(code));
          await work();
        })),
    );
  }

  function askForPassword() {
    content.replaceChildren(
      oneField("Your password, to add a passkey", "Continue", (password) => add({ password }), "password"),
    );
  }

  function add(credentials = {}) {
    const name = `Passkey of ${new Date().toLocaleDateString()}`;
    return attempt(() => addPasskey(client, { name, ...credentials }));
  }

  function render() {
    content.replaceChildren(
      button("Add a passkey", () => passkeys.length === 0 && hasPassword ? askForPassword() : add()),
    );
  }

  function entryOf({ passkeyId, name, lastUsedAt }) {
    const entry = document.createElement("li");
    const used = lastUsedAt === null ? "never used" : `last used ${new Date(lastUsedAt).toLocaleString()}`;
    entry.append(
      text(`${name}, ${used}`),
      button("Rename", () =>
        content.replaceChildren(
          oneField("New name", "Save", (to) => attempt(() => renamePasskey(client, { passkeyId, name: to }))),
        )),
      button("Remove", () => attempt(() => removePasskey(client, passkeyId))),
    );
    return entry;
  }

  supportsPasskeys().then((supported) => section.hidden = !supported);
  section.closest("dialog").addEventListener("close", render);
  render();
  const ends = [
    client.subscribe(ownAccount, {}, (account) => hasPassword = account?.hasPassword ?? false, () => {}),
    client.subscribe(ownPasskeys, {}, (current) => {
      passkeys = current ?? [];
      list.replaceChildren(...passkeys.map(entryOf));
    }, () => {}),
  ];
  return () => ends.forEach((end) => end());
}
