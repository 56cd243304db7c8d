/** The keys of the configuration whose secret is in a file, as service managers and containers provide secrets. */
import { readFileSync, statSync } from 'node:fs';
import { hashKey, type ParsedKey, parseKey } from '../auth/key.ts';
import type { SeedKey, Seeds } from '../auth/preseed.ts';
import { listed, misconfigured, reasonOf } from '../refused.ts';
import { type ConfiguredKey, findDuplicates, type Preseed } from './preseed.ts';

/** Far more than a key has: a longer file is not a key file. */
const FILE_BYTES_MAX = 4096;
const READABLE_BY_ALL = 0o004;

export interface ReadSeeds {
  readonly seeds: Seeds;
  /** Secret files that every user of the machine may read. */
  readonly readable_by_all: readonly string[];
}

/** @throws Refused `configuration` with every file that cannot be read, or contains no key or the wrong one */
export function readSecretFiles({ accounts, subscriptions, keys }: Preseed): ReadSeeds {
  const problems: string[] = [];
  const readable_by_all: string[] = [];
  const read = keys.flatMap((key): SeedKey[] => {
    const { source, ...terms } = key;
    if (source.kind === 'hash')
      return [{ ...terms, id: source.id, prefix: source.prefix, hash: source.hash }];
    try {
      const { text, mode } = readSmall(source.file);
      if ((mode & READABLE_BY_ALL) !== 0) readable_by_all.push(source.file);
      const { id, prefix } = keyIn(text, key);
      return [{ ...terms, id, prefix, hash: hashKey(text) }];
    } catch (error) {
      const reason = reasonOf(error, source.file);
      problems.push(`${key.place}.secret_file: ${source.file}: ${reason}`);
      return [];
    }
  });
  findDuplicates(read, problems);
  if (problems.length > 0) throw misconfigured(listed(problems, 'keys of the configuration cannot be read'));
  return { seeds: { accounts, subscriptions, keys: read }, readable_by_all };
}

/** @throws Error that says what is wrong, but never repeats the content */
function keyIn(text: string, { source }: ConfiguredKey): ParsedKey {
  const key = parseKey(text);
  if (key === null)
    throw new Error(
      'it does not contain a complete key (PREFIX_live_ID_SECRET), or its checksum is wrong because it was copied badly',
    );
  const expected = source.kind === 'secret_file' ? source.id : null;
  if (expected !== null && expected !== key.id)
    throw new Error(`it contains key ${key.id}, but the entry names ${expected}`);
  return key;
}

function readSmall(path: string): { text: string; mode: number } {
  const { mode, size } = statSync(path);
  if (size > FILE_BYTES_MAX)
    throw new Error(`it is larger than ${FILE_BYTES_MAX} bytes, so it is not a key file`);
  return { text: readFileSync(path, 'utf8').trim(), mode };
}
