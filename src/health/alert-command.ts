/**
 * Runs the operator's command ([alerts] command) when an alert opens or closes: one at a time, each with a time limit.
 * Nothing waits for it, and its failures are logged.
 */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import type { Logger } from '../logger.ts';
import { SECOND_MS } from '../time.ts';
import type { AlertDocument } from './alert-texts.ts';

export type AlertCommand = ReturnType<typeof createAlertCommand>;

const RUN_MS = 30 * SECOND_MS;
/** Several times the number of kinds of alerts. */
const WAITING_MAX = 100;
/** Settings, which may contain secrets: not passed on. */
const SETTING = /^WIREWATCH_/;

/** @param command the program and its arguments, without a shell; empty runs nothing */
export function createAlertCommand(command: readonly string[], log: Logger, runMs = RUN_MS) {
  const [program, ...args] = command;
  const waiting: string[] = [];
  let running: ChildProcess | null = null;

  const onError = (err: unknown) => log.warn({ err, program }, 'cannot run the alert command');

  async function runWaiting(): Promise<void> {
    for (let input = waiting.shift(); program !== undefined && input !== undefined; input = waiting.shift())
      try {
        const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !SETTING.test(name)));
        const stdio: StdioOptions = ['pipe', 'ignore', 'ignore'];
        const child = spawn(program, args, { env, stdio, timeout: runMs, killSignal: 'SIGKILL' });
        running = child;
        child.on('error', onError);
        // The command may exit without reading its stdin. There is none if no file descriptor was left for it.
        child.stdin?.on('error', () => {});
        child.stdin?.end(input);
        await new Promise((resolve) => child.on('close', resolve));
        const { exitCode: code, signalCode: signal } = child;
        // A negative code: it was not started, which was logged above.
        if (signal !== null || (code !== null && code > 0))
          log.warn({ program, code, signal }, 'the alert command failed');
      } catch (error) {
        // `spawn` throws errors of the system that it does not emit: too little memory, for example.
        onError(error);
      }
    running = null;
  }

  return {
    /** Runs the command with a JSON object on stdin: the alert, and whether it opened or closed. */
    run(event: 'opened' | 'closed', alert: AlertDocument): void {
      if (program === undefined) return;
      if (waiting.length === WAITING_MAX) {
        log.warn({ alert: alert.name, event }, 'alert command skipped: too many alerts are waiting for it');
        return;
      }
      waiting.push(`${JSON.stringify({ event, ...alert })}\n`);
      if (running === null) void runWaiting();
    },
    close(): void {
      waiting.length = 0;
      running?.kill('SIGKILL');
    },
  };
}
