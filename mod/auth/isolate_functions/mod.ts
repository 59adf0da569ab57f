/** The system functions of accounts: what runs in the isolates, by the paths under which it is called. */
import type { SystemModule } from "../../functions/system_module.ts";
import { deleteUser, emailTaken, findCredential, signIn, signUp } from "./accounts.ts";
import {
  createAdmin,
  listAdmins,
  needsSetup,
  revokeSessions,
  setAdminPassword,
  setUpFirstAdmin,
} from "./admins.ts";
import { confirmEmail, requestChange, requestCode, resetPassword, signInByMail } from "./codes.ts";
import {
  account,
  listSessions,
  ownCredential,
  setName,
  setOwnPassword,
  signOutEverywhere,
  signOutSession,
} from "./own_account.ts";
import { endSessionBy, findSession, impersonate, refreshSession } from "./sessions.ts";
import { sweep } from "./sweep.ts";
import { tables } from "../tables.ts";

/** Called by the server only, at `_system/auth:<name>`. */
export const systemFunctions = {
  confirmEmail,
  createAdmin,
  deleteUser,
  emailTaken,
  endSessionBy,
  findCredential,
  findSession,
  impersonate,
  listAdmins,
  needsSetup,
  ownCredential,
  refreshSession,
  requestChange,
  requestCode,
  resetPassword,
  revokeSessions,
  setAdminPassword,
  setOwnPassword,
  setUpFirstAdmin,
  signIn,
  signInByMail,
  signUp,
  sweep,
};

/** What clients call about their own account, at `_auth:<name>`. */
export const ownAccountFunctions = { account, listSessions, setName, signOutEverywhere, signOutSession };

/** What accounts bring into the isolates. */
export const authModules: readonly SystemModule[] = [
  { path: "_system/auth", tables, functions: systemFunctions },
  { path: "_auth", tables: {}, functions: ownAccountFunctions },
];

// For apps under test, whose users come without signing up.
export { internalMutation } from "../tables.ts";
