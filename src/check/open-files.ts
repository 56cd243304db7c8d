/** How many files and connections this user's processes may have open. */
import { readFileSync } from 'node:fs';
import { type Finding, ok, warn } from './finding.ts';

/** Databases, logs, threads, photos on their way. */
const OWN_FILES = 200;

export function checkOpenFiles(connectionsMax: number, limit = openFilesLimit()): Finding {
  const check = 'open files';
  if (limit === null) return ok(check, 'no limit, or none that is known here');
  const needed = connectionsMax + OWN_FILES;
  return limit >= needed
    ? ok(check, `${limit.toLocaleString('en-US')} allowed, ${needed.toLocaleString('en-US')} needed at most`)
    : warn(
        check,
        `${limit.toLocaleString('en-US')} allowed, but [server] max_connections and its own files can need ${needed.toLocaleString('en-US')}`,
        'Raise the limit (ulimit -n, LimitNOFILE of the service), or lower [server] max_connections.',
      );
}

/** Of this process, as Linux tells it (proc_pid_limits(5)). Null: unlimited, or not known here. */
function openFilesLimit(): number | null {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? null : Number(soft);
  } catch {
    return null;
  }
}
