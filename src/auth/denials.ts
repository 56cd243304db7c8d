/**
 * Keys that were revoked and accounts that were suspended while access.db could not be written: in memory, and in the file
 * `revocations` of the data folder. The file has its full size from the start, so a full disk does not prevent it (unless
 * its file system copies on write). Every start refuses what it names; what changes access.db applies it first, and empties
 * it.
 *
 * A line is the CRC-32 of its document in hexadecimal digits, a space, and the document: a damaged line hides no other.
 */
import { fdatasyncSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { unlessCode } from '../refused.ts';
import { type Database, writing } from '../store/database.ts';
import { type DataFolder, isThere, openFile, writeWhole } from '../store/folder.ts';
import type { AccessReader, StoredKey } from './access-reader.ts';
import { findAccount, suspendAccount } from './accounts.ts';
import { findKey, revokeKey } from './keys.ts';

/** `at`: epoch milliseconds. */
export type Ended = Readonly<{ kind: 'key' | 'account'; id: string; at: number }>;

export type Denied = Pick<Ended, 'kind' | 'id'>;

export type Denials = ReturnType<typeof createDenials>;

export function createDenials() {
  const denied = new Set<string>();
  const shown = (key: StoredKey): StoredKey => ({
    ...key,
    ...(denied.has(`key ${key.id}`) && { revoked_at: 0 }),
    ...(denied.has(`account ${key.account.id}`) && { account: { ...key.account, suspended_at: 0 } }),
  });
  return {
    deny: ({ kind, id }: Denied) => void denied.add(`${kind} ${id}`),
    /** Once access.db says it, which decides from then on. */
    forget: ({ kind, id }: Denied) => void denied.delete(`${kind} ${id}`),
    /**
     * The reader, with what is denied: `revoked_at` and `suspended_at` are then the beginning of 1970.
     * @param requireServing throws once another machine has taken over: then it knows which keys are right
     */
    over: (reader: AccessReader, requireServing: () => void): AccessReader => ({
      ...reader,
      findKey(id, proves) {
        requireServing();
        const key = reader.findKey(id, proves);
        return key === null || denied.size === 0 ? key : shown(key);
      },
    }),
  };
}

/**
 * Gives access.db what was revoked or suspended while it could not be written.
 * @param remembered what was, since the file may not have it @returns what it was
 */
export function applyRevocations(folder: DataFolder, access: Database, remembered: readonly Ended[] = []) {
  const noted = readEnded(folder);
  const ended = [...noted, ...remembered];
  if (ended.length > 0) applyEnded(access, ended);
  if (noted.length > 0) emptyRevocations(folder);
  return ended;
}

export function applyEnded(access: Database, ended: readonly Ended[]): void {
  writing(access, () => {
    for (const { kind, id, at } of ended) {
      // It may have been removed since.
      if (kind === 'key' && findKey(access, id) !== null) revokeKey(access, id, at);
      if (kind === 'account' && findAccount(access, id) !== null) suspendAccount(access, id, at);
    }
  });
}

/** Some seven hundred lines. */
const FILE_BYTES = 64 * 1024;
const LINE = /([0-9a-f]{8}) ({[^{}]*})/g;

const pathOf = ({ root }: DataFolder) => join(root, 'revocations');

/** Creates the file where it is missing. @throws the file system's error */
export function prepareRevocations(folder: DataFolder): void {
  if (!isThere(pathOf(folder))) writeWhole(pathOf(folder), ' '.repeat(FILE_BYTES));
}

/** Durable when it returns. @throws the file system's error; Error if the file has no room left */
export const noteEnded = (folder: DataFolder, ended: Ended) =>
  overwrite(folder, [...readEnded(folder), ended]);

/** In the order in which they were noted. @throws the file system's error */
export function readEnded(folder: DataFolder): Ended[] {
  const text = unlessCode('', () => readFileSync(pathOf(folder), 'latin1'), 'ENOENT');
  return [...text.matchAll(LINE)].flatMap(([, sum, document = '']) =>
    checksum(document) === sum ? [JSON.parse(document)] : [],
  );
}

/**
 * Once access.db has them. What cannot be emptied is removed: an account that is resumed would be suspended again by it.
 * @throws the file system's error
 */
export function emptyRevocations(folder: DataFolder): void {
  try {
    overwrite(folder, []);
  } catch {
    rmSync(pathOf(folder), { force: true });
  }
}

/** In place. Lines that were there before get the same bytes. */
function overwrite(folder: DataFolder, all: readonly Ended[]): void {
  const documents = all.map((ended) => JSON.stringify(ended));
  const lines = documents.map((document) => `${checksum(document)} ${document}\n`);
  const content = lines.join('').padEnd(FILE_BYTES);
  if (content.length > FILE_BYTES) throw new Error(`${pathOf(folder)} is full`);
  using file = openFile(pathOf(folder), 'r+');
  writeSync(file.fd, content, 0);
  fdatasyncSync(file.fd);
}

const checksum = (document: string) => crc32(document).toString(16).padStart(8, '0');
