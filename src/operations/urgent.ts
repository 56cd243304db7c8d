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
import { type Denied, noteEnded } from '../auth/denials.ts';
import { errorCode, reasonOf } from '../refused.ts';
import type { Database } from '../store/database.ts';
import { isDamage, isDiskFull } from '../store/database-errors.ts';
import type { Context } from './operation.ts';
import type { Outcome } from './problem.ts';

const DISK_ERROR = /^(EIO|EROFS|SQLITE_(IOERR|READONLY|CANTOPEN).*)$/;

const causeOf = (error: unknown) =>
  error instanceof Error && error.cause !== undefined ? error.cause : error;
const isOfDisk = (cause: unknown) =>
  isDiskFull(cause) || isDamage(cause) || DISK_ERROR.test(errorCode(cause));

/** What access.db has of a key or an account that is to end; null: the disk gives nothing. @throws what `read` throws else */
export function readEnding<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch (error) {
    if (isOfDisk(causeOf(error))) return null;
    throw error;
  }
}

/**
 * Ends the access of a key or an account, whatever the disk does.
 * @param what as a sentence begins: `key ID is revoked`; `again`: the command that repeats it
 * @throws what `work` throws for another reason
 */
export function endNow(
  context: Context,
  denied: Denied,
  { what, again }: { readonly what: string; readonly again: string },
  work: (access: Database) => void,
): Pick<Outcome, 'warning' | 'failed'> {
  try {
    context.change(work);
    return {};
  } catch (error) {
    const cause = causeOf(error);
    if (!isOfDisk(cause)) throw error;
    const why = reasonOf(cause);
    const ended = { ...denied, at: context.nowMs };
    context.running?.deny(ended);
    try {
      noteEnded(context.folder, ended);
      const warning = `${what}, but access.db could not be written: ${why}. It is in the file revocations in the data folder, which a restart reads, until access.db can take it.`;
      return { warning };
    } catch {
      if (context.running === null) throw error;
      const warning = `${what} only in the memory of the running Wirewatch, because the disk cannot be written: ${why}. After a restart it would work again. Do not restart; make the disk writable, then run again: ${again}`;
      return { warning, failed: true };
    }
  }
}
