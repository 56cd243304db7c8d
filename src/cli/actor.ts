/** Who runs a command, as the audit trail names it. */
import { userInfo } from 'node:os';
import type { Actor } from '../auth/actor.ts';

export function actorOfProcess(): Actor {
  const { SUDO_USER = '' } = process.env;
  return { actor: userName(), ...(SUDO_USER !== '' && { sudo_user: SUDO_USER }) };
}

/** The user of this process; the user's number if it has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
