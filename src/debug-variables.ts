/**
 * NODE_DEBUG and NODE_DEBUG_NATIVE have Node write what passes through it to stderr, and with that parts of keys. Node
 * reads them before this program, which cannot take that back: so it begins again without them.
 */
import { isPacked, ownCommand } from './packed.ts';

const VARIABLES = ['NODE_DEBUG', 'NODE_DEBUG_NATIVE'];

/** Puts the same program, with the same arguments, in the place of this process where such a variable is set. */
export function leaveDebugging(): void {
  const found = VARIABLES.filter((name) => process.env[name]);
  if (found.length === 0) return;
  for (const name of found) delete process.env[name];
  const [node, ...script] = ownCommand();
  // What comes before a script is Node's; the executable has it inside.
  const before = isPacked ? [] : [...process.execArgv, ...script];
  process.execve?.(node, [node, ...before, ...process.argv.slice(2)], process.env);
}
