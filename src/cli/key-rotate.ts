/** `wirewatch key rotate`: a new key with the same rights, while the old one keeps working for a while. */
import type { Command } from 'commander';
import { createKey, hashKey } from '../auth/key.ts';
import { type Rotation, rotateKey } from '../auth/keys.ts';
import type { Config } from '../config/load.ts';
import { OVERLAP_DEFAULT_MS, readOverlap } from '../config/option-values.ts';
import { DAY_MS, formatMs } from '../time.ts';
import { type None, orNull, withAccess } from './access.ts';
import { configOf } from './config.ts';
import { expiresValue, ID_HELP, keyIdValue } from './key-options.ts';
import { usageOfKeys, usedKeyDocument } from './key-usage.ts';
import { addExamples, commonOptions, optionValue } from './options.ts';
import { print } from './output.ts';

export function registerRotate(key: Command): void {
  const command = key
    .command('rotate')
    .description(
      'replace a key: create one with the same rights, shown only once, while the old one keeps working for a while',
    )
    .argument('<id>', ID_HELP, keyIdValue)
    .option(
      '--overlap <time>',
      `how long the old key keeps working, such as 7d, 12h, 30m or 0 (default: ${OVERLAP_DEFAULT_MS / DAY_MS}d)`,
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
      const replacement = {
        id: made.id,
        prefix,
        hash: hashKey(made.key),
        overlapMs: options.overlap ?? OVERLAP_DEFAULT_MS,
        expires_at: orNull(options.expires),
      };
      const rotation = withAccess(self, (db) => rotateKey(db, id, replacement, nowMs));
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
  return optionValue(readOverlap(value));
}
