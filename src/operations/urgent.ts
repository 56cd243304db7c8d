/**
 * What must be possible on a full disk and on a broken one: revoking a key, suspending an account.
 *
 * | access.db | the file `revocations` | a running appliance | then |
 * |---|---|---|---|
 * | takes it | | | done |
 * | cannot be written, or is damaged | takes it | refuses it from memory at once | done: the next start refuses it, too |
 * | cannot be written | cannot be written | refuses it from memory at once | until it ends, or `access.db` takes it: the command says so, and fails |
 * | cannot be written | cannot be written | none runs | refused |
 */
import type { Denied } from '../auth/denials.ts';
import { errorCode, reasonOf } from '../refused.ts';
import type { Database } from '../store/database.ts';
import { isDamage, isDiskFull } from '../store/database-errors.ts';
import { noteEnded } from '../store/revocations.ts';
import type { Context } from './operation.ts';

export type Ending<Result> =
  | { readonly kind: 'kept'; readonly result: Result }
  /** `why`: what the disk said. */
  | { readonly kind: 'noted' | 'in memory'; readonly why: string };

const DISK_ERROR = /^(EIO|EROFS|SQLITE_(IOERR|READONLY|CANTOPEN).*)$/;

/** Ends the access of a key or an account, whatever the disk does. @throws what `work` throws for another reason */
export function endNow<Result>(
  context: Context,
  denied: Denied,
  work: (access: Database) => Result,
): Ending<Result> {
  try {
    return { kind: 'kept', result: context.change(work) };
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    if (!isDiskFull(cause) && !isDamage(cause) && !DISK_ERROR.test(errorCode(cause))) throw error;
    const why = reasonOf(cause);
    const ended = { ...denied, at: context.nowMs };
    const isLive = context.deny(ended);
    try {
      noteEnded(context.folder, ended);
      return { kind: 'noted', why };
    } catch {
      if (!isLive) throw error;
      return { kind: 'in memory', why };
    }
  }
}

/** @param what as a sentence begins: `Key ID is revoked` @param again the command that repeats it */
export function warningOf(ending: Ending<unknown>, what: string, again: string): string | null {
  switch (ending.kind) {
    case 'kept':
      return null;
    case 'noted':
      return `${what}, but access.db could not be written: ${ending.why}. It is in the file revocations in the data folder, which a restart reads, until access.db can take it.`;
    case 'in memory':
      return `${what} only in the memory of the running Wirewatch, because the disk cannot be written: ${ending.why}. After a restart it would work again. Do not restart; make the disk writable, then run again: ${again}`;
  }
}
