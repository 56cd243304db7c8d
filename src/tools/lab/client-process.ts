/** The client that takes the exam, as a process that can be killed and started again. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { unlessError } from '../../refused.ts';

export type ClientProcess = ReturnType<typeof clientProcess>;

/** @param command a line for the shell */
export function clientProcess(command: string, env: NodeJS.ProcessEnv) {
  let child: ChildProcess | null = null;
  return {
    get isRunning(): boolean {
      // One that could not be started has no pid.
      return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
    },
    start(): void {
      // A process group of its own, so that kill ends what the shell started. Its output is for the user.
      child = spawn(command, { env, shell: true, detached: true, stdio: ['ignore', 2, 2] });
      child.on('error', () => {});
    },
    /** Exit code if it ended by itself since the last call, null for a signal; undefined: it did not end. */
    takeEnd(): number | null | undefined {
      if (child === null || this.isRunning) return undefined;
      const { exitCode } = child;
      child = null;
      return exitCode;
    },
    /** Kills it with all its processes; resolves when it is gone. */
    async kill(): Promise<void> {
      const gone = child !== null && this.isRunning ? once(child, 'exit') : null;
      const pid = child?.pid;
      child = null;
      if (gone === null || pid === undefined) return;
      // It may have just ended.
      unlessError(false, () => process.kill(-pid, 'SIGKILL'));
      await gone;
    },
  };
}
