/** `wirewatch key rotate`: a new key with the same rights, while the old one goes on for a while. */
import type { Command } from 'commander';
import { createKey, hashKey } from '../auth/key.ts';
import { type Rotation, rotateKey } from '../auth/key-rotation.ts';
import type { Config } from '../config/load.ts';
import { OVERLAP_DEFAULT_MS, readOverlap } from '../config/terms.ts';
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
      'make a new key with the rights of another, which goes on for a while; it is shown this one time',
    )
    .argument('<id>', ID_HELP, keyIdValue)
    .option(
      '--overlap <time>',
      `how long the old key goes on, such as 7d, 12h, 30m, or 0 (default: ${OVERLAP_DEFAULT_MS / DAY_MS}d)`,
      overlapValue,
    )
    .option('--expires <instant>', 'when the new key ends, or none (default: as the old one)', expiresValue)
    .action((id: string, options: { overlap?: number; expires?: number | None }, self: Command) => {
      const config = configOf(self);
      const { prefix } = config.keys;
      const made = createKey(prefix);
      const nowMs = Date.now();
      const terms = {
        overlapMs: options.overlap ?? OVERLAP_DEFAULT_MS,
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
    `Created key ${added.id} with the rights of ${old.id}, which ends at ${endOf(rotation)}.`,
    `The key, shown this one time; it cannot be shown again:\n\n  ${key}`,
    'Hand it over. The cursors of the client stay valid: it goes on where it was.',
    ...(added.expires_at === null ? [] : [`The new key ends at ${formatMs(added.expires_at)}.`]),
    `To see that the old one is no longer used: wirewatch key show ${old.id}`,
    ...(isConfigured
      ? [`${configFile} still names ${old.id}: it stays as it is, and is not revived. Take it out there.`]
      : []),
  ].join('\n\n');
}

/** When the old key ends. */
function endOf({ old }: Rotation): string {
  return formatMs(old.expires_at ?? 0);
}

/** Option value: a time such as `7d`, `12h`, `30m` or `0`; milliseconds. */
function overlapValue(value: string): number {
  return optionValue(readOverlap(value));
}
