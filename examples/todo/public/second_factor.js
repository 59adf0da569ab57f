/** Second factors: the second step of a sign-in, and the settings of the signed-in account. */
import {
  challengeOf,
  confirmTotp,
  finishSignIn,
  ownFactors,
  proofOf,
  proveFactor,
  removeTotp,
  renewRecoveryCodes,
  startTotp,
} from "syncline/accounts";
import { button } from "./account.js";

/** Returns a function that shows the second step if an error asks for one, and returns whether it did. */
export function secondStep(client, { firstStep, form }) {
  let challenge = null;
  const problem = form.querySelector(".problem");
  const show = (next) => {
    challenge = next;
    firstStep.hidden = challenge !== null;
    form.hidden = challenge === null;
    form.reset();
    showProblem(problem, "");
    if (challenge !== null) form.elements.code.focus();
  };
  form.querySelector("[data-act=back]").onclick = () => show(null);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    form.inert = true;
    try {
      await finishSignIn(client, challenge, proofOf(form.elements.code.value));
      show(null);
    } catch (error) {
      if (error.code === "invalid_challenge") show(null);
      showProblem(problem, error.message);
    } finally {
      form.inert = false;
    }
  });
  return (error) => {
    const found = challengeOf(error);
    if (found !== null) show(found);
    return found !== null;
  };
}

/** Shows the factors of the account in the settings, live. Returns a function that ends the updates. */
export function showFactors(client, section) {
  const problem = section.querySelector(".problem");
  const content = section.querySelector("div");
  const attempt = async (work) => {
    showProblem(problem, "");
    await work().catch((error) => showProblem(problem, error.message));
  };
  /** Runs a change. Asks for a proof of the second factor first if the server requires one. */
  const change = (work) =>
    attempt(() =>
      work().catch((error) => {
        if (error.code !== "factor_required") throw error;
        content.replaceChildren(
          oneField("Code of your app, or a recovery code", "Continue", (code) =>
            attempt(async () => {
              await proveFactor(client, proofOf(code));
              await work();
            })),
        );
      })
    );
  const showCodes = (codes) => {
    const list = document.createElement("ul");
    list.ariaLabel = "Recovery codes";
    list.append(...codes.map((code) => Object.assign(document.createElement("li"), { textContent: code })));
    content.replaceChildren(
      text("Each of these codes signs you in once if you lose your phone. They are not shown again."),
      list,
    );
  };
  const setUp = () =>
    content.replaceChildren(
      oneField("Your password", "Continue", (password) =>
        attempt(async () => {
          const { enrolmentId, qrCode, secret } = await startTotp(client, { password });
          const image = Object.assign(new Image(180, 180), {
            src: `data:image/svg+xml,${encodeURIComponent(qrCode)}`,
            alt: "QR code for an authenticator app",
          });
          content.replaceChildren(
            text("Scan this with an authenticator app, or type in the key."),
            image,
            Object.assign(document.createElement("code"), { textContent: secret }),
            oneField("Code that the app shows", "Confirm", (code) =>
              attempt(async () => showCodes(await confirmTotp(client, { enrolmentId, code })))),
          );
        }), "password"),
    );
  let factors = null;
  const render = () => {
    showProblem(problem, "");
    content.replaceChildren(
      ...(factors?.totp
        ? [
          text(`An authenticator app is set up. ${factors.recoveryCodes} recovery codes are left.`),
          button("New recovery codes", () => change(async () => showCodes(await renewRecoveryCodes(client)))),
          button("Remove the second factor", () =>
            change(async () => {
              await removeTotp(client);
              render();
            })),
        ]
        : [button("Set up a second factor", setUp)]),
    );
  };
  section.closest("dialog").addEventListener("close", render);
  return client.subscribe(ownFactors, {}, (current) => {
    factors = current;
    // Forms, and codes that were just created, stay visible.
    if (content.querySelector("ul, form") === null) render();
  }, () => {});
}

/** A form with one field. */
export function oneField(label, submit, onSubmit, type = "text") {
  const form = document.createElement("form");
  const field = document.createElement("label");
  const input = Object.assign(document.createElement("input"), {
    name: "value",
    type,
    required: true,
    autocomplete: type === "password" ? "current-password" : "one-time-code",
  });
  field.append(label, input);
  form.append(
    field,
    Object.assign(document.createElement("button"), { textContent: submit, className: "quiet" }),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    onSubmit(input.value);
  });
  return form;
}

export const text = (textContent) =>
  Object.assign(document.createElement("p"), { className: "muted", textContent });

export function showProblem(element, message) {
  element.textContent = message;
  element.hidden = message === "";
}
