/** The system functions of accounts that run in isolates, by path. */
import type { SystemModule } from "../../functions/system_module.ts";
import { deleteUser, emailTaken, findCredential, signIn, signUp } from "./accounts.ts";
import {
  adminRole,
  callerRole,
  createAdmin,
  listAdmins,
  needsSetup,
  removeFactors,
  revokeSessions,
  setAdminPassword,
  setUpFirstAdmin,
} from "./admins.ts";
import * as administrators from "./administrators.ts";
import { confirmEmail, requestChange, requestCode, resetPassword, signInByMail } from "./codes.ts";
import { callerIsAnonymous, signInAnonymously, sweepAnonymous } from "./anonymous.ts";
import { findChallenge, finishChallenge } from "./factors/challenges.ts";
import * as keys from "./api_keys.ts";
import { findPasskey, signInWithPasskey } from "./factors/passkey_rows.ts";
import * as passkeys from "./factors/own_passkeys.ts";
import * as others from "./factors/others_factors.ts";
import * as factors from "./factors/own_factors.ts";
import {
  account,
  listSessions,
  ownCredential,
  setName,
  setOwnPassword,
  signOutEverywhere,
  signOutSession,
} from "./own_account.ts";
import { beginFlow, signInWithProvider, takeFlow } from "./identities/flows.ts";
import { admitSubject, findSubject } from "./identities/identity_rows.ts";
import {
  beginLink,
  linkIdentity,
  listIdentities,
  prepareLink,
  storeIdentity,
  unlinkIdentity,
} from "./identities/own_identities.ts";
import { endSessionBy, findSession, impersonate, refreshSession, sweep } from "./sessions.ts";
import { addressOf, createUser, deleteUserStep, setUserPassword } from "./user_changes.ts";
import { edit, emails, endOneSession, endSessions, get, list } from "./users.ts";
import { tables } from "../tables.ts";

/** Called by the server only, at `_system/auth:<name>`. */
export const systemFunctions = {
  addApiKey: keys.addApiKey,
  addOwnApiKey: keys.addOwnApiKey,
  addPasskey: passkeys.addPasskey,
  addressOf,
  adminRole,
  admitSubject,
  beginFlow,
  beginLink,
  storeIdentity,
  confirmAdminPassword: others.confirmAdminPassword,
  confirmEmail,
  confirmEnrolment: factors.confirmEnrolment,
  createAdmin,
  createUser,
  deleteUser,
  deleteUserStep,
  emailTaken,
  endSessionBy,
  enrolmentOwner: factors.enrolmentOwner,
  findApiKey: keys.findApiKey,
  findApiKeyId: keys.findApiKeyId,
  findChallenge,
  findCredential,
  findEnrolment: factors.findEnrolment,
  findPasskey,
  findSession,
  findSubject,
  finishChallenge,
  impersonate,
  keyOwner: keys.keyOwner,
  linkIdentity,
  listAdmins,
  needsSetup,
  noteApiKeyUse: keys.noteApiKeyUse,
  ownAdminCredential: administrators.ownAdminCredential,
  ownCredential,
  ownTotp: factors.ownTotp,
  passkeyOwner: passkeys.passkeyOwner,
  passkeysToProve: passkeys.passkeysToProve,
  prepareLink,
  proveFactor: factors.proveFactor,
  provePasskey: passkeys.provePasskey,
  refreshSession,
  removeFactors,
  removeFactorsOfAdmin: others.removeFactorsOfAdmin,
  removeFactorsOfUser: others.removeFactorsOfUser,
  removePasskey: passkeys.removePasskey,
  removePasskeyOfUser: others.removePasskeyOfUser,
  removeTotp: factors.removeTotp,
  renewRecoveryCodes: factors.renewRecoveryCodes,
  requestChange,
  requestCode,
  resetPassword,
  revokeSessions,
  setAdminPassword,
  setOwnAdminPassword: administrators.setOwnAdminPassword,
  setOwnPassword,
  setUpFirstAdmin,
  setUserPassword,
  signIn,
  signInAnonymously,
  signInByMail,
  signInWithPasskey,
  signInWithProvider,
  signUp,
  signUpWithPasskey: passkeys.signUpWithPasskey,
  storeEnrolment: factors.storeEnrolment,
  sweep,
  sweepAnonymous,
  takeFlow,
  unlinkIdentity,
};

/** Called by clients about their own account, at `_auth:<name>`. */
export const ownAccountFunctions = {
  account,
  listApiKeys: keys.listOwnApiKeys,
  listFactors: factors.listFactors,
  listIdentities,
  listPasskeys: passkeys.listPasskeys,
  listSessions,
  renamePasskey: passkeys.renamePasskey,
  revokeApiKey: keys.revokeOwnApiKey,
  setName,
  signOutEverywhere,
  signOutSession,
};

/** Called by administrators, at `_admin/users:<name>`. */
export const userFunctions = {
  edit,
  emails,
  endSession: endOneSession,
  endSessions,
  get,
  list,
};

/** Called by administrators, at `_admin/administrators:<name>`. */
export const administratorFunctions = {
  endOwnSessions: administrators.endOwnSessions,
  endSession: administrators.endOneSession,
  endSessions: administrators.endSessions,
  list: administrators.list,
  me: administrators.me,
  remove: administrators.remove,
  renamePasskey: passkeys.renamePasskeyOfAdmin,
  sessions: administrators.sessions,
  setRole: administrators.setRole,
};

/** Called by administrators, at `_admin/apiKeys:<name>`. */
export const apiKeyFunctions = { list: keys.listApiKeys, revoke: keys.revokeApiKey };

/** Called by `ctx.auth` in functions of the app, at `_ctx/auth:<name>`. */
const ctxFunctions = { isAnonymous: callerIsAnonymous, requireFactor: factors.requireFactor };

/** Tables and functions of accounts for the isolates. */
export const authModules: readonly SystemModule[] = [
  { path: "_system/auth", tables, functions: systemFunctions, adminRole: callerRole as never },
  { path: "_admin/users", tables: {}, functions: userFunctions },
  { path: "_admin/administrators", tables: {}, functions: administratorFunctions },
  { path: "_admin/apiKeys", tables: {}, functions: apiKeyFunctions },
  { path: "_auth", tables: {}, functions: ownAccountFunctions },
  { path: "_ctx/auth", tables: {}, functions: ctxFunctions },
];

// For apps under test, whose users do not sign up.
export { insertUser, userCreated } from "./hooks.ts";
export { setProfile } from "./user_changes.ts";
export { internalMutation } from "../tables.ts";
