/** The sessions of the signed-in user, and all settings of an account in one component. */
import { createElement as h, type ReactElement } from "react";
import { type OwnSession, ownSessions } from "../../accounts/own_account.ts";
import { useAuth } from "../use_auth.ts";
import { useQueries } from "../use_queries.ts";
import { Button, Loading, Panel, Problem, useAttempt } from "./elements.ts";
import { PasskeyList } from "./passkey_list.ts";
import { SecondFactorSettings } from "./second_factor_settings.ts";
import { ROOT } from "./style.ts";
import { useTexts } from "./texts.ts";

/** The sessions of the signed-in user, with device and last use. Each can be signed out. */
export function SessionList(): ReactElement {
  const texts = useTexts();
  const { auth } = useAuth();
  const attempt = useAttempt();
  // Errors as values: the query fails when the user signs out while the list is open.
  const { sessions } = useQueries({ sessions: { query: ownSessions, args: {} } });
  if (sessions === undefined) return h(Loading);
  if (sessions instanceof Error) {
    return h(Panel, { title: texts.sessionsTitle }, h("p", { role: "alert" }, texts.failed));
  }
  const open = sessions.filter(({ expiresAt }) => expiresAt > Date.now());
  const end = ({ sessionId, current }: OwnSession) =>
    current ? auth.signOut() : auth.signOutSession(sessionId);
  return h(
    Panel,
    { title: texts.sessionsTitle },
    h(
      "ul",
      { className: "syncline-list", "aria-label": texts.sessionsTitle },
      open.map((session) =>
        h(Entry, { key: session.sessionId, session, onEnd: () => attempt.run(() => end(session)) })
      ),
    ),
    h(Problem, { attempt }),
    open.length > 1
      ? h(
        "div",
        { className: "syncline-row" },
        h(Button, {
          attempt,
          onClick: () => auth.signOutEverywhere({ keepCurrent: true }),
        }, texts.signOutOthers),
      )
      : null,
  );
}

function Entry(
  { session, onEnd }: { readonly session: OwnSession; readonly onEnd: () => void },
): ReactElement {
  const texts = useTexts();
  const { browser, system, current, impersonated, refreshedAt } = session;
  const name = impersonated ? texts.sessionImpersonated : texts.sessionName(browser, system);
  return h(
    "li",
    null,
    h(
      "div",
      null,
      h("span", null, name),
      h("small", null, current ? texts.sessionCurrent : texts.sessionUsed(refreshedAt)),
    ),
    h(Button, { label: texts.signOutOf(name), onClick: onEnd }, texts.signOut),
  );
}

/** All settings of the signed-in account: second factor, passkeys and sessions. */
export function AccountSettings(): ReactElement {
  return h(
    "div",
    { className: `${ROOT} syncline-settings` },
    h(SecondFactorSettings),
    h(PasskeyList),
    h(SessionList),
  );
}
