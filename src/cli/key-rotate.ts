/** `wirewatch key rotate`: a new key with the same rights, while the old one keeps working for a while. */
import { type Command, InvalidArgumentError } from 'commander';
import { createKey, hashKey } from '../auth/key.ts';
import { type Rotation, rotateKey } from '../auth/key-rotation.ts';
import type { Config } from '../config/load.ts';
import { DAY_MS, formatMs, HOUR_MS, MINUTE_MS } from '../time.ts';
import { type None, orNull, withAccess } from './access.ts';
import { configOf } from './config.ts';
import { expiresValue, ID_HELP, keyIdValue } from './key-options.ts';
import { usageOfKeys, usedKeyDocument } from './key-usage.ts';
import { addExamples, commonOptions } from './options.ts';
import { print } from './output.ts';

const OVERLAP_DEFAULT = '7d';
const OVERLAP_MS_MAX = 366 * DAY_MS;
const UNITS: Readonly<Record<string, number>> = { d: DAY_MS, h: HOUR_MS, m: MINUTE_MS };

export function registerRotate(key: Command): void {
  const command = key
    .command('rotate')
    .description(
      'replace a key: create one with the same rights, shown only once, while the old one keeps working for a while',
    )
    .argument('<id>', ID_HELP, keyIdValue)
    .option(
      '--overlap <time>',
      `how long the old key keeps working, such as 7d, 12h, 30m or 0 (default: ${OVERLAP_DEFAULT})`,
      overlapValue,
    )
    .option(
      '--expires <time>',
      'when the new key expires, or none (default: when the old key would have expired)',
      expiresValue,
    )
    .action((id: string, options: { overlap?: number; expires?: number | None }, self: Command) => {
      const config = configOf(self);
      const { prefix } = config.keys;
      const made = createKey(prefix);
      const nowMs = Date.now();
      const terms = {
        overlapMs: options.overlap ?? overlapValue(OVERLAP_DEFAULT),
        expires_at: orNull(options.expires),
      };
      const hashed = { id: made.id, prefix, hash: hashKey(made.key) };
      const rotation = withAccess(self, (db) => rotateKey(db, id, hashed, terms, nowMs));
      const document = usedKeyDocument(rotation.added, usageOfKeys(self, nowMs), nowMs);
      print(
        { ...document, key: made.key, replaces: id, replaced_expires_at: endOf(rotation) },
        { json: commonOptions(self).json, text: () => rotatedText(rotation, made.key, config) },
      );
    });
  addExamples(command, ['key rotate abcdefghij23', 'key rotate abcdefghij23 --overlap 12h --json']);
}

function rotatedText(rotation: Rotation, key: string, { preseed, configFile }: Config): string {
  const { added, old } = rotation;
  const isConfigured = preseed.keys.some(({ source }) => source.id === old.id);
  return [
    `Created key ${added.id} with the rights of ${old.id}. The old key expires at ${endOf(rotation)}.`,
    `The key. It is shown only once:\n\n  ${key}`,
    'Give it to the client. The cursors of the client stay valid, so it continues where it was.',
    ...(added.expires_at === null ? [] : [`The new key expires at ${formatMs(added.expires_at)}.`]),
    `To check that the old key is no longer used: wirewatch key show ${old.id}`,
    ...(isConfigured
      ? [`${configFile} still has an entry for ${old.id}. It does not bring the old key back; remove it.`]
      : []),
  ].join('\n\n');
}

/** When the old key ends. */
function endOf({ old }: Rotation): string {
  return formatMs(old.expires_at ?? 0);
}

/** Option value: a duration such as `7d`, `12h`, `30m` or `0`; milliseconds. */
function overlapValue(value: string): number {
  const [, count = '', unit = ''] = /^(0|[1-9]\d{0,5})([dhm]?)$/.exec(value) ?? [];
  const ms = Number(count) * (UNITS[unit] ?? 0);
  const isRead = count !== '' && (unit !== '' || count === '0') && ms <= OVERLAP_MS_MAX;
  if (isRead) return ms;
  throw new InvalidArgumentError('Expected a duration of at most 366 days, such as 7d, 12h, 30m or 0.');
}
