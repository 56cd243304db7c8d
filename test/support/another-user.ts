/** Permissions do not restrict root: this user is for what must not be allowed. `setpriv` runs a command as it. */
import { spawnSync } from 'node:child_process';
import { programCommand } from './command.ts';

export const OTHER_ID = 65_534;

export const AS_OTHER = [`--reuid=${OTHER_ID}`, `--regid=${OTHER_ID}`, '--clear-groups'];

/** The `through` of a program that is run as that user. */
export const asOther = (program: string, args: readonly string[]): [string, string[]] => [
  'setpriv',
  [...AS_OTHER, program, ...args],
];

/** The reason to skip a test; false if this is root, and that user can read the program: not below a private folder. */
export function withoutAnotherUser(): string | false {
  const { command, args } = programCommand(['--version']);
  const isRun = () => spawnSync('setpriv', [...AS_OTHER, command, ...args]).status === 0;
  return !(process.getuid?.() === 0 && isRun()) && 'it cannot be run as another user here';
}
