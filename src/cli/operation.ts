/** What the access log says of who changed something, and by which command: part of the audit trail. */
import { userInfo } from 'node:os';
import type { Command } from 'commander';
import type { Operation } from '../history/format.ts';

/** The command's names alone: values on its line may be secrets. */
export function operationOf(command: Command): Operation {
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

/** Of this process; its number where it has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
