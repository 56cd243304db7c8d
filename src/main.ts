/** The program `wirewatch`: the arguments to one command, and its end to an exit code. */
import { reportEnd, run } from './cli/program.ts';
import { isPacked, ownCommand } from './packed.ts';

/**
 * Node's threads for files are four by default. Drop folder, copy, photos and certificates may be on shares that hang. Two
 * calls hang at most of the copy, of each thread that asks the disks of both, of photos, and of certificates: that is 14.
 */
process.env.UV_THREADPOOL_SIZE ??= '20';

/**
 * With these, Node writes data to stderr, including parts of keys. It reads them before this program runs, so the program
 * restarts itself without them.
 */
const DEBUGGING = ['NODE_DEBUG', 'NODE_DEBUG_NATIVE'].filter((name) => process.env[name]);
if (DEBUGGING.length > 0) {
  for (const name of DEBUGGING) delete process.env[name];
  const [node, ...script] = ownCommand();
  // Arguments before the script are for Node; the executable contains them.
  const before = isPacked ? [] : [...process.execArgv, ...script];
  process.execve?.(node, [node, ...before, ...process.argv.slice(2)], process.env);
}

// `wirewatch … | head`: the reader has closed the pipe, so an error message would not arrive.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit();
  leave(reportEnd(error));
});
process.stderr.on('error', () => {});
// A command that outlives its first line (serve) puts its own in this one's place, to log before it ends.
process.on('uncaughtException', (error) => leave(reportEnd(error)));

void run(process.argv.slice(2)).then((code) => {
  // After a success, the process waits for open handles; after a failure, some may never be closed.
  if (code === 0) process.exitCode = 0;
  else leave(code);
});

/** Exits once what was printed is out: where a pipe is written in the background, exiting at once would cut it. */
function leave(code: number): void {
  process.exitCode = code;
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
}
