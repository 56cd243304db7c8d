/** The program `wirewatch`: the arguments to one command, and its end to an exit code. */
import { reportEnd, run } from './cli/program.ts';
import { leaveDebugging } from './debug-variables.ts';

leaveDebugging();

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
