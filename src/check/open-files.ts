/** How many files and connections a process of this user can have open. */
import { readFileSync } from 'node:fs';
import { grouped } from '../counted.ts';
import { type Outcome, ok, warn } from './finding.ts';

/** Databases, logs, threads, photos being sent. */
const OWN_FILES = 200;

export function checkOpenFiles(connectionsMax: number, limit = openFilesLimit()): Outcome {
  if (limit === null) return ok('no limit, or the limit is not known');
  const needed = connectionsMax + OWN_FILES;
  return limit >= needed
    ? ok(`${grouped(limit, needed)} allowed, at most ${grouped(needed, limit)} needed`)
    : warn(
        `${grouped(limit, needed)} allowed, but with [server] max_connections Wirewatch may need ${grouped(needed)}`,
        'Raise the limit (ulimit -n, or LimitNOFILE= of the service), or lower [server] max_connections.',
      );
}

/** The limit of this process, from Linux (proc_pid_limits(5)). Null: unlimited, or not known. */
function openFilesLimit(): number | null {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? null : Number(soft);
  } catch {
    return null;
  }
}
