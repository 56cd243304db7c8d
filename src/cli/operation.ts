/** Who ran a command, as the access log records it: part of the audit trail. */
import { userInfo } from 'node:os';
import type { Command } from 'commander';
import type { Actor } from '../history/actor.ts';
import type { Operation } from '../history/format.ts';

/** The names of the command only: option values may be secrets. */
export function operationOf(command: Command): Operation & Actor {
  const names: string[] = [];
  for (let at: Command | null = command; at?.parent != null; at = at.parent) names.unshift(at.name());
  const { SUDO_USER } = process.env;
  return {
    kind: 'command',
    command: names.join(' '),
    actor: userName(),
    ...(SUDO_USER === undefined || SUDO_USER === '' ? {} : { sudo_user: SUDO_USER }),
  };
}

/** The user of this process; the user's number if it has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
