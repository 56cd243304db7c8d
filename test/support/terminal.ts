/** Runs the program on a pseudo-terminal, which python3 opens. */
import { spawnSync } from 'node:child_process';

/** Copies the terminal's output to stdout, forwards SIGTERM, hangs up on SIGUSR1, and exits with the program's code. */
const RUN_ON_TERMINAL = `
import os, pty, signal, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
hung_up = False
def hang_up(*_):
    global hung_up
    hung_up = True
    os.close(terminal)
signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
signal.signal(signal.SIGUSR1, hang_up)
while not hung_up:
    try:
        shown = os.read(terminal, 65536)
    except OSError:
        break
    if not shown:
        break
    os.write(1, shown)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status) % 256)
`;

export const terminalMissing: string | false =
  spawnSync('python3', ['-c', 'import pty']).status === 0 ? false : 'python3 is not installed';

/** Wraps a command line so that it runs on a pseudo-terminal. */
export const onTerminal = (program: string, args: readonly string[]): [string, string[]] => [
  'python3',
  ['-c', RUN_ON_TERMINAL, program, ...args],
];
