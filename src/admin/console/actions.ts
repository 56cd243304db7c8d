/**
 * What can be done from the console: each action calls the function that its command calls, under the name of the person
 * (api.ts). What takes long becomes a job.
 */
import { resumeAccount, suspendAccount } from '../../auth/accounts.ts';
import { endConsoleSession } from '../../auth/console-sessions.ts';
import { createKey, hashKey, isKeyId } from '../../auth/key.ts';
import { rotateKey } from '../../auth/key-rotation.ts';
import { addKey, revokeKey } from '../../auth/keys.ts';
import {
  OVERLAP_DEFAULT_MS,
  type Reading,
  readAccountId,
  readAddresses,
  readDailyRows,
  readExpires,
  readKeySubscriptions,
  readName,
  readOverlap,
  readScopes,
} from '../../config/setting-terms.ts';
import { openAccess } from '../../history/access.ts';
import { noteOperation } from '../../history/operation-note.ts';
import { pauseIngest, resumeIngest } from '../../ingest/pause.ts';
import { RELEASES, type Release, requireStatus } from '../../ingest/requests/window-release.ts';
import { Refused } from '../../refused.ts';
import { type Database, writing } from '../../store/database.ts';
import { withReserve } from '../../store/reserve.ts';
import { formatMs } from '../../time.ts';
import { findWindow } from '../../windows/ledger.ts';
import {
  list,
  number,
  optional,
  readBody,
  readExport,
  readTime,
  readWindowStart,
  text,
} from './action-body.ts';
import type { ActionResult } from './api.ts';
import { beginBackup, beginRequest, beginScrub } from './begin-jobs.ts';
import type { Sources } from './sources.ts';
import type { Ask } from './thread-messages.ts';

/** What an action is given. */
interface Acting {
  readonly sources: Sources;
  readonly body: string;
  /** The name of the person. */
  readonly by: string;
  /** As the audit trail names it, in the words of the command line. */
  readonly command: string;
  readonly nowMs: number;
}

const ACTIONS: ReadonlyMap<string, (acting: Acting) => ActionResult> = new Map([
  ['ingest-pause', bare(pause)],
  ['ingest-resume', bare(resume)],
  ['ingest-replay', replay],
  ['window-reset', (acting: Acting) => release(acting, 'reset')],
  ['window-accept', (acting: Acting) => release(acting, 'accept')],
  ['window-expect', expect],
  ['key-create', create],
  ['key-rotate', rotate],
  ['key-revoke', revoke],
  ['account-suspend', suspend],
  ['account-resume', resumeKeys],
  ['backup', bare((acting) => beginBackup(acting, changing))],
  ['scrub', bare((acting) => beginScrub(acting, changing))],
  ['session-end', endSession],
]);

/** @returns JSON text; @throws Refused */
export async function act(
  sources: Sources,
  { action, body, by }: Extract<Ask, { kind: 'act' }>,
  nowMs: number,
): Promise<string> {
  const run = ACTIONS.get(action);
  if (run === undefined) throw new Refused('not_found', `There is no action ${action}.`);
  return JSON.stringify(run({ sources, body, by, command: action.replace('-', ' '), nowMs }));
}

/** Changes access.db as a command does, also on a full disk. */
function changing<Result>({ sources, by, command }: Acting, work: (access: Database) => Result): Result {
  const { folder, settings } = sources;
  return withReserve(folder, () => {
    const access = openAccess(settings.data, { operation: { kind: 'console', command, actor: by } });
    try {
      return work(access);
    } finally {
      access.close();
    }
  });
}

/** Of an action whose body has no members. */
function bare(run: (acting: Acting) => ActionResult): (acting: Acting) => ActionResult {
  return (acting) => {
    readBody(acting.body, {});
    return run(acting);
  };
}

function pause(acting: Acting): ActionResult {
  const since = changing(acting, (access) => pauseIngest(access, acting.nowMs));
  return { text: `Ingest is paused since ${formatMs(since)}. Dropped files stay where they are.` };
}

function resume(acting: Acting): ActionResult {
  const was = changing(acting, resumeIngest);
  return {
    text: was === null ? 'Ingest was not paused.' : `Ingest goes on. It was paused since ${formatMs(was)}.`,
  };
}

function replay(acting: Acting): ActionResult {
  const { from, to } = readBody(acting.body, {
    from: optional(text(readTime), 0),
    to: optional(text(readTime), Number.MAX_SAFE_INTEGER),
  });
  if (from >= to) throw new Refused('invalid_request', 'from: it must be before to');
  return beginRequest(acting, changing, {
    kind: 'ingest-replay',
    subject: '',
    request: { kind: 'replay', from, to },
  });
}

function windowOf({ body }: Acting) {
  const window = readBody(body, { export: text(readExport), window_start: text(readWindowStart) });
  return { window, subject: `${window.export} ${formatMs(window.window_start)}` };
}

function release(acting: Acting, which: Release['name']): ActionResult {
  const { window, subject } = windowOf(acting);
  const { export: name, window_start: start } = window;
  const db = acting.sources.detections();
  const wanted = RELEASES.find((one) => one.name === which);
  if (wanted === undefined) throw new Error(`there is no release ${which}`);
  requireStatus(db === null ? undefined : findWindow(db, name, start)?.status, wanted, name, start);
  const request = { kind: 'reset', ...window, from: wanted.from } as const;
  return beginRequest(acting, changing, { kind: `window-${which}`, subject, request });
}

function expect(acting: Acting): ActionResult {
  const { window, subject } = windowOf(acting);
  if (window.window_start > acting.nowMs)
    throw new Refused('invalid_request', 'window_start: the window has not begun: expected one that has');
  const request = { kind: 'expect', ...window } as const;
  return beginRequest(acting, changing, { kind: 'window-expect', subject, request });
}

function create(acting: Acting): ActionResult {
  const { account, ...terms } = readBody(acting.body, {
    account: text(readAccountId),
    name: text(readName),
    scopes: list(readScopes),
    subscriptions: list(readKeySubscriptions),
    expires_at: optional(text(readExpires), null),
    allow_addresses: optional(list(readAddresses), []),
    daily_rows: optional(number(readDailyRows), null),
  });
  if (terms.expires_at !== null && terms.expires_at <= acting.nowMs)
    throw new Refused('invalid_request', 'expires_at: expected a time in the future');
  const { made, hashed } = newKey(acting);
  changing(acting, (access) => addKey(access, { ...hashed, account_id: account, ...terms }, acting.nowMs));
  return { text: `Created key ${made.id}. It is shown only once.`, key: made };
}

function newKey({ sources }: Acting) {
  const prefix = sources.settings.key_prefix;
  const made = createKey(prefix);
  return { made, hashed: { id: made.id, prefix, hash: hashKey(made.key) } };
}

function rotate(acting: Acting): ActionResult {
  const { nowMs } = acting;
  const { id, overlap: overlapMs } = readBody(acting.body, {
    id: text(readKeyId),
    overlap: optional(text(readOverlap), OVERLAP_DEFAULT_MS),
  });
  const { made, hashed } = newKey(acting);
  const { old } = changing(acting, (access) =>
    rotateKey(access, id, hashed, { overlapMs, expires_at: undefined }, nowMs),
  );
  return {
    text: `Created key ${made.id} with the rights of ${id}, which ends at ${formatMs(old.expires_at ?? nowMs)}. The new key is shown only once.`,
    key: made,
  };
}

function revoke(acting: Acting): ActionResult {
  const { id } = readBody(acting.body, { id: text(readKeyId) });
  const { wasRevoked } = changing(acting, (access) => revokeKey(access, id, acting.nowMs));
  return { text: wasRevoked ? `Key ${id} was revoked already.` : `Revoked key ${id}.` };
}

function suspend(acting: Acting): ActionResult {
  const { id } = readBody(acting.body, { id: text(readAccountId) });
  changing(acting, (access) => suspendAccount(access, id, acting.nowMs));
  return { text: `Account ${id} is suspended: none of its keys works until it is resumed.` };
}

function resumeKeys(acting: Acting): ActionResult {
  const { id } = readBody(acting.body, { id: text(readAccountId) });
  changing(acting, (access) => resumeAccount(access, id));
  return { text: `The keys of account ${id} work again.` };
}

/** The person's own: whoever knows the id of a session has it. */
function endSession(acting: Acting): ActionResult {
  const { id } = readBody(acting.body, { id: text((value) => ({ kind: 'read', value })) });
  const end = (access: Database) =>
    writing(access, () => {
      endConsoleSession(access, id, acting.nowMs);
      noteOperation(access, { kind: 'session-end' }, acting.nowMs);
    });
  changing(acting, end);
  return { text: 'The session has ended.' };
}

function readKeyId(text: string): Reading<string> {
  return isKeyId(text)
    ? { kind: 'read', value: text }
    : { kind: 'wrong', expected: 'the id of a key: 12 characters a-z and 2-7' };
}
