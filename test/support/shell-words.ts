/** What a POSIX shell makes of a command line. */
import { spawnSync } from 'node:child_process';

export function shellWords(line: string): string[] {
  const script = `set -- ${line}; for word; do printf '%s\\0' "$word"; done`;
  return spawnSync('/bin/sh', ['-c', script], { encoding: 'utf8' }).stdout.split('\0').slice(0, -1);
}
