/**
 * With NODE_DEBUG or NODE_DEBUG_NATIVE, Node writes data to stderr, including parts of keys. Node reads these variables
 * before this program runs, so the program restarts itself without them.
 */
import { isPacked, ownCommand } from './packed.ts';

const VARIABLES = ['NODE_DEBUG', 'NODE_DEBUG_NATIVE'];

/** Replaces this process by the same program with the same arguments, if such a variable is set. */
export function leaveDebugging(): void {
  const found = VARIABLES.filter((name) => process.env[name]);
  if (found.length === 0) return;
  for (const name of found) delete process.env[name];
  const [node, ...script] = ownCommand();
  // Arguments before the script are for Node; the executable contains them.
  const before = isPacked ? [] : [...process.execArgv, ...script];
  process.execve?.(node, [node, ...before, ...process.argv.slice(2)], process.env);
}
