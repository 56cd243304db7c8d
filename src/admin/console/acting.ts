/** Who does an action, and how it changes access.db. */
import type { Actor } from '../../history/actor.ts';
import { openAccess } from '../../history/open-access.ts';
import type { Database } from '../../store/database.ts';
import { withReserve } from '../../store/reserve.ts';
import type { Sources } from './sources.ts';

export interface Acting {
  readonly sources: Sources;
  readonly by: Actor;
  /** As the audit trail names it, in the words of the command line. */
  readonly command: string;
  readonly nowMs: number;
}

/** Changes access.db as a command does, also on a full disk. @throws Refused */
export function changeAccess<Result>(
  { sources, by, command }: Acting,
  work: (access: Database) => Result,
): Result {
  const { folder, settings } = sources;
  return withReserve(folder, () => {
    using access = openAccess(settings.data, { operation: { kind: 'console', command, ...by } });
    return work(access);
  });
}
