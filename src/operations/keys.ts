/** The API keys of clients. Changes apply to the next request. */
import { Type } from '@sinclair/typebox';
import { createKey, parseKey } from '../auth/key-form.ts';
import { addKey, getKey, keyDocument, listKeys, revokeKey, rotateKey, setKey } from '../auth/keys.ts';
import { listeningUrl } from '../config/listening.ts';
import { type Reading, read, readKeyId, wrong } from '../config/option-values.ts';
import { keyUsage, readUsage } from '../limits/usage.ts';
import { Refused } from '../refused.ts';
import { documentText, listText } from '../text-layout.ts';
import { DAY_MS, formatMs, HOUR_MS, parseDuration } from '../time.ts';
import { required, value } from './member.ts';
import { KEY, KEY_MEMBERS, NEW_KEY, NEW_KEY_MEMBERS, TIME } from './members.ts';
import { act, type Context, reading, requireChange } from './operation.ts';
import { endNow, readEnding } from './urgent.ts';

const OVERLAP_DEFAULT_MS = 7 * DAY_MS;
const OVERLAP_MS_MAX = 366 * DAY_MS;
const ID = required(
  value(readId, { hint: 'key id: the 12 characters after "_live_"', placeholder: 'id', isSecret: true }),
);

/** The key itself comes last, once. */
const withoutKey = ({ key: _, ...shown }: { readonly key: string }) => documentText(shown);

export const KEYS = [
  act('key create', {
    summary: 'create a key. It is shown only once',
    members: NEW_KEY_MEMBERS,
    result: NEW_KEY,
    examples: [
      'key create --account acme --name Dashboard --scopes detections:read --subscriptions 7001',
      'key create --account acme --name Partner --scopes detections:read --subscriptions 7001:text,7002 --expires 2027-01-01T00:00:00Z --allow-address 192.0.2.0/24',
    ],
    form: {
      label: 'Make a key',
      title: 'Make a key for',
      will: 'The key works at once. It is shown only once.',
    },
    run(context, { account: account_id, expires: expires_at, allow_address: allow_addresses, ...terms }) {
      const { config, nowMs, live } = context;
      requireFuture(expires_at, nowMs);
      const { key, ...stored } = createKey(config.keys.prefix);
      const added = { ...stored, ...terms, account_id, expires_at, allow_addresses };
      const created = context.change((db) => addKey(db, added, nowMs));
      const url =
        config.server.base_url || (live?.url ?? listeningUrl(config.server) ?? 'http://127.0.0.1:PORT');
      return {
        value: { ...keyDocuments(context)(created), key },
        done: `Created key ${created.id}.`,
        next: [
          `The key. It is shown only once:\n\n  ${key}`,
          `Try it:\n\n  curl -H 'Authorization: Bearer ${key}' '${url}/v1/detections/changes?since=${formatMs(nowMs - HOUR_MS)}'`,
        ],
      };
    },
    text: withoutKey,
  }),
  reading('key list', {
    summary: 'list all keys',
    result: Type.Array(KEY),
    examples: ['key list', 'key list --json'],
    run: (context) => ({ value: listKeys(context.access()).map(keyDocuments(context)) }),
    // An entry has more: a line is no longer than that of a terminal.
    text: listText('There are no keys yet. To create one, see: wirewatch key create --help', [
      'id',
      'account',
      'name',
      'status',
      'scopes',
      'subscriptions',
      'expires_at',
      'last_used_at',
      'rows_today',
    ]),
  }),
  reading('key show', {
    summary: 'show one key, without its secret',
    members: { id: ID },
    result: KEY,
    examples: ['key show abcdefghij23'],
    run: (context, { id }) => ({ value: keyDocuments(context)(getKey(context.access(), id)) }),
  }),
  act('key set', {
    summary: 'change a key, but not its secret. Values that you do not give stay unchanged',
    members: {
      id: ID,
      ...KEY_MEMBERS,
      account: {
        ...KEY_MEMBERS.account,
        hint: 'account of the key, as a check; a key cannot move to another account',
      },
    },
    result: KEY,
    examples: [
      'key set abcdefghij23 --expires 2027-01-01T00:00:00Z',
      'key set abcdefghij23 --allow-address none --daily-rows none',
    ],
    form: {
      label: 'Change',
      title: 'Change key',
      will: 'The changes apply from the next request on.',
      fields: ['name', 'scopes', 'subscriptions', 'expires', 'allow_address', 'daily_rows'],
    },
    run(context, { id, account: account_id, expires: expires_at, allow_address: allow_addresses, ...given }) {
      const changes = { account_id, expires_at, allow_addresses, ...given };
      requireChange('key set', changes);
      requireFuture(expires_at, context.nowMs);
      const key = context.change((db) => setKey(db, id, changes));
      return { value: keyDocuments(context)(key), done: `Changed key ${id}.` };
    },
  }),
  act('key rotate', {
    summary:
      'replace a key: create one with the same rights, shown only once, while the old one keeps working for a while',
    members: {
      id: ID,
      overlap: value(readOverlap, {
        hint: `how long the old key keeps working, such as 7d, 12h, 30m or 0 (default: ${OVERLAP_DEFAULT_MS / DAY_MS}d)`,
        placeholder: 'time',
      }),
      expires: {
        ...KEY_MEMBERS.expires,
        hint: 'when the new key expires, or none (default: when the old key would have expired; required if the overlap is longer)',
      },
    },
    result: Type.Composite([NEW_KEY, Type.Object({ replaces: Type.String(), replaced_expires_at: TIME })]),
    examples: ['key rotate abcdefghij23', 'key rotate abcdefghij23 --overlap 12h --json'],
    form: {
      label: 'Rotate',
      will: 'A new key with the same rights is made and shown only once. The old one keeps working for the time chosen here, then ends. Cursors stay valid.',
    },
    run(context, { id, overlap: overlapMs = OVERLAP_DEFAULT_MS, expires: expires_at }) {
      const { config, nowMs } = context;
      requireFuture(expires_at, nowMs);
      const { key, ...stored } = createKey(config.keys.prefix);
      const replacement = { ...stored, overlapMs, expires_at };
      const { added, old } = context.change((db) => rotateKey(db, id, replacement, nowMs));
      const replaced_expires_at = formatMs(old.expires_at ?? 0);
      const ends = added.expires_at === null ? 'never expires' : `expires at ${formatMs(added.expires_at)}`;
      return {
        value: { ...keyDocuments(context)(added), key, replaces: id, replaced_expires_at },
        done: `Created key ${added.id} with the rights of ${id}: it ${ends}. The old key expires at ${replaced_expires_at}.`,
        next: [
          `The key. It is shown only once:\n\n  ${key}`,
          'Give it to the client. The cursors of the client stay valid, so it continues where it was.',
          `To check that the old key is no longer used: wirewatch key show ${id}`,
        ],
      };
    },
    text: withoutKey,
  }),
  act('key revoke', {
    summary: 'revoke a key permanently',
    members: { id: ID },
    result: KEY,
    examples: ['key revoke abcdefghij23', 'key revoke abcdefghij23 --yes'],
    form: {
      label: 'Revoke',
      will: 'Requests with this key, and with its access tokens, are refused from now on (401). This cannot be undone.',
      isGrave: true,
    },
    confirmedBy: 'id',
    run(context, { id }) {
      let key = readEnding(() => getKey(context.access(), id));
      const wasRevoked = key !== null && key.revoked_at !== null;
      const said = { what: `key ${id} is revoked`, again: `wirewatch key revoke ${id} --yes` };
      const ending = endNow(context, { kind: 'key', id }, said, (db) => {
        key = revokeKey(db, id, context.nowMs);
      });
      return {
        value:
          key === null
            ? { id, status: 'revoked' }
            : keyDocuments(context)({ ...key, revoked_at: key.revoked_at ?? context.nowMs }),
        done: wasRevoked ? `Key ${id} was already revoked.` : `Revoked key ${id}.`,
        ...ending,
      };
    },
  }),
];

/** How long an old key remains valid beside its new one, in milliseconds. */
function readOverlap(text: string): Reading<number> {
  const ms = text === '0' ? 0 : parseDuration(text);
  const isRead = ms !== null && ms >= 0 && ms <= OVERLAP_MS_MAX;
  return isRead ? read(ms) : wrong('a duration of at most 366 days, such as 7d, 12h, 30m or 0');
}

/** A key id. A complete key is accepted, too: after a leak it is what the operator has at hand. */
function readId(idOrKey: string): Reading<string> {
  const reading = readKeyId(parseKey(idOrKey)?.id ?? idOrKey);
  return reading.kind === 'read'
    ? reading
    : wrong(`${reading.expected}. To list the ids of all keys: wirewatch key list`);
}

/**
 * An operator who ends a key at once revokes it; a past time is a slip.
 * @param nowMs by the clock of the installation: that of a lab can be set
 * @throws Refused `invalid_request`
 */
function requireFuture(expires: number | null | undefined, nowMs: number): void {
  if (expires == null || expires > nowMs) return;
  throw new Refused('invalid_request', `expires: expected a time in the future, found ${formatMs(expires)}`);
}

/** @returns makes the document of a key, with its use so far */
export function keyDocuments({ folder, nowMs }: Pick<Context, 'folder' | 'nowMs'>) {
  const written = readUsage(folder.usage);
  // By key id; null if the file cannot be read.
  const usage = written && keyUsage(written, nowMs);
  return (key: ReturnType<typeof getKey>) => {
    const { last_used_at = null, rows_today = 0 } = usage?.get(key.id) ?? {};
    return {
      ...keyDocument(key, nowMs),
      last_used_at: last_used_at === null ? null : formatMs(last_used_at),
      rows_today: usage === null ? null : rows_today,
    };
  };
}
