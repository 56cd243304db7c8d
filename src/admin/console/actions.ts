/**
 * The actions of the console (action-table.ts): each calls the function that its command calls, under the name of the
 * person. Those that take longer than a request are in job-actions.ts.
 */
import { resumeAccount, suspendAccount } from '../../auth/accounts.ts';
import { endConsoleSession } from '../../auth/console-sessions.ts';
import { createKey } from '../../auth/key.ts';
import { addKey, revokeKey, rotateKey } from '../../auth/keys.ts';
import {
  OVERLAP_DEFAULT_MS,
  readAccountId,
  readAddresses,
  readDailyRows,
  readExpires,
  readKeyId,
  readKeySubscriptions,
  readName,
  readOverlap,
  readScopes,
} from '../../config/option-values.ts';
import { noteOperation } from '../../history/operation-note.ts';
import { pauseIngest, resumeIngest } from '../../ingest/pause.ts';
import { Refused } from '../../refused.ts';
import { writing } from '../../store/database.ts';
import { formatMs } from '../../time.ts';
import { type Acting, changeAccess } from './acting.ts';
import {
  list,
  type Members,
  number,
  optional,
  readBody,
  readExport,
  readTime,
  readWindowStart,
  text,
  type Values,
} from './action-body.ts';
import type { Action, ActionResult } from './api.ts';
import { backUp, expect, release, replay, verify } from './job-actions.ts';
import type { Sources } from './sources.ts';
import type { Ask } from './thread-messages.ts';

type Run = (acting: Acting, body: string) => ActionResult;

const ACCOUNT = { id: text(readAccountId) };
const KEY = { id: text(readKeyId) };
const WINDOW = { export: text(readExport), window_start: text(readWindowStart) };
const PERIOD = {
  from: optional(text(readTime), 0),
  to: optional(text(readTime), Number.MAX_SAFE_INTEGER),
};
const ROTATION = { ...KEY, overlap: optional(text(readOverlap), OVERLAP_DEFAULT_MS) };
const NEW_KEY = {
  account: text(readAccountId),
  name: text(readName),
  scopes: list(readScopes),
  subscriptions: list(readKeySubscriptions),
  expires_at: optional(text(readExpires), null),
  allow_addresses: optional(list(readAddresses), []),
  daily_rows: optional(number(readDailyRows), null),
};
const SESSION = { id: text((value) => ({ kind: 'read', value })) };

const RUNS: Readonly<Record<Action['kind'] | 'session-end', Run>> = {
  'ingest-pause': run({}, pause),
  'ingest-resume': run({}, resume),
  'ingest-replay': run(PERIOD, replay),
  'window-reset': run(WINDOW, (acting, window) => release(acting, window, 'reset')),
  'window-accept': run(WINDOW, (acting, window) => release(acting, window, 'accept')),
  'window-expect': run(WINDOW, expect),
  'key-create': run(NEW_KEY, create),
  'key-rotate': run(ROTATION, rotate),
  'key-revoke': run(KEY, revoke),
  'account-suspend': run(ACCOUNT, suspend),
  'account-resume': run(ACCOUNT, unsuspend),
  backup: run({}, backUp),
  scrub: run({}, verify),
  'session-end': run(SESSION, endSession),
};

/** @param members of the body, with the rule of each */
function run<Of extends Members>(
  members: Of,
  work: (acting: Acting, values: Values<Of>) => ActionResult,
): Run {
  return (acting, body) => work(acting, readBody(body, members));
}

function isKnown(kind: string): kind is keyof typeof RUNS {
  return Object.hasOwn(RUNS, kind);
}

/** @returns JSON text; @throws Refused */
export function act(
  sources: Sources,
  { action, body, by }: Extract<Ask, { kind: 'act' }>,
  nowMs: number,
): string {
  if (!isKnown(action)) throw new Refused('not_found', `There is no action ${action}.`);
  const acting = { sources, by, command: action.replace('-', ' '), nowMs };
  return JSON.stringify(RUNS[action](acting, body));
}

function pause(acting: Acting): ActionResult {
  const since = changeAccess(acting, (access) => pauseIngest(access, acting.nowMs));
  return { text: `Ingest is paused since ${formatMs(since)}. Dropped files stay where they are.` };
}

function resume(acting: Acting): ActionResult {
  const was = changeAccess(acting, resumeIngest);
  return {
    text:
      was === null ? 'Ingest was not paused.' : `Ingest is resumed. It was paused since ${formatMs(was)}.`,
  };
}

function create(acting: Acting, { account, ...values }: Values<typeof NEW_KEY>): ActionResult {
  const { nowMs } = acting;
  if (values.expires_at !== null && values.expires_at <= nowMs)
    throw new Refused('invalid_request', 'expires_at: expected a time in the future');
  const { key, hashed } = newKey(acting);
  changeAccess(acting, (access) => addKey(access, { ...hashed, account_id: account, ...values }, nowMs));
  return { text: `Created key ${key.id}. It is shown only once.`, key };
}

function newKey({ sources }: Acting) {
  const { key, ...hashed } = createKey(sources.settings.key_prefix);
  return { key: { id: hashed.id, key }, hashed };
}

function rotate(acting: Acting, { id, overlap: overlapMs }: Values<typeof ROTATION>): ActionResult {
  const { nowMs } = acting;
  const { key, hashed } = newKey(acting);
  const { old } = changeAccess(acting, (access) =>
    rotateKey(access, id, { ...hashed, overlapMs, expires_at: undefined }, nowMs),
  );
  return {
    text: `Created key ${key.id} with the rights of ${id}, which ends at ${formatMs(old.expires_at ?? nowMs)}. The new key is shown only once.`,
    key,
  };
}

function revoke(acting: Acting, { id }: Values<typeof KEY>): ActionResult {
  const { wasRevoked } = changeAccess(acting, (access) => revokeKey(access, id, acting.nowMs));
  return { text: wasRevoked ? `Key ${id} was already revoked.` : `Revoked key ${id}.` };
}

function suspend(acting: Acting, { id }: Values<typeof ACCOUNT>): ActionResult {
  changeAccess(acting, (access) => suspendAccount(access, id, acting.nowMs));
  return { text: `Account ${id} is suspended: none of its keys works until it is resumed.` };
}

function unsuspend(acting: Acting, { id }: Values<typeof ACCOUNT>): ActionResult {
  changeAccess(acting, (access) => resumeAccount(access, id));
  return { text: `The keys of account ${id} work again.` };
}

/** Only its own person knows the id of a session. */
function endSession(acting: Acting, { id }: Values<typeof SESSION>): ActionResult {
  changeAccess(acting, (access) =>
    writing(access, () => {
      endConsoleSession(access, id, acting.nowMs);
      noteOperation(access, { kind: 'session-end' }, acting.nowMs);
    }),
  );
  return { text: 'The session has ended.' };
}
