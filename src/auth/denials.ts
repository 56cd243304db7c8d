/** Keys and accounts whose revocation or suspension the disk could not take (store/revocations.ts). */
import { type Database, writing } from '../store/database.ts';
import type { DataFolder } from '../store/folder.ts';
import { type Ended, emptyRevocations, readEnded } from '../store/revocations.ts';
import type { AccessReader, StoredKey } from './access-reader.ts';
import { findAccount, suspendAccount } from './accounts.ts';
import { findKey, revokeKey } from './keys.ts';

export type Denied = Pick<Ended, 'kind' | 'id'>;

export class Denials {
  readonly #denied = new Set<string>();

  deny({ kind, id }: Denied): void {
    this.#denied.add(`${kind} ${id}`);
  }

  /** Once access.db says it, which decides from then on. */
  forget({ kind, id }: Denied): void {
    this.#denied.delete(`${kind} ${id}`);
  }

  /**
   * The reader, with what is denied: `revoked_at` and `suspended_at` are then the beginning of 1970.
   * @param requireServing throws once another machine has taken over: then it knows which keys are right
   */
  over(reader: AccessReader, requireServing: () => void): AccessReader {
    const denied = (key: StoredKey | null): StoredKey | null => {
      if (key === null || this.#denied.size === 0) return key;
      const revoked = this.#denied.has(`key ${key.id}`) ? { revoked_at: 0 } : {};
      const suspended = this.#denied.has(`account ${key.account.id}`)
        ? { account: { ...key.account, suspended_at: 0 } }
        : {};
      return { ...key, ...revoked, ...suspended };
    };
    return {
      ...reader,
      findKey(id, proves) {
        requireServing();
        return denied(reader.findKey(id, proves));
      },
    };
  }
}

/**
 * Gives access.db what was revoked or suspended while it could not be written.
 * @param remembered what was, since the file may not have it @returns what it was
 */
export function applyRevocations(
  folder: DataFolder,
  access: Database,
  remembered: readonly Ended[] = [],
): readonly Denied[] {
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
