/**
 * Runs the operator's command ([alerts] command) whenever an alert opens or closes: one after the other, each bounded in
 * time. It holds nothing up, and what goes wrong with it is a line of the log.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Logger } from '../log.ts';
import { SECOND_MS } from '../time.ts';
import type { AlertDocument } from './alerts.ts';

export interface AlertCommand {
  /** Runs it, with a JSON object on its stdin: the alert, and whether it opened or closed. */
  run(event: 'opened' | 'closed', alert: AlertDocument): void;
  /** Ends the one that runs; those that wait are not run. */
  close(): void;
}

const RUN_MS = 30 * SECOND_MS;
/** Where a command takes all its time, as many alerts as there are kinds can wait for it. */
const WAITING_MAX = 100;
/** The configuration, in which secrets may stand. */
const OWN_VARIABLE = /^WIREWATCH_/;

/** @param command the program and its arguments; empty: nothing is run. No shell reads it */
export function createAlertCommand(command: readonly string[], log: Logger, runMs = RUN_MS): AlertCommand {
  const [program, ...args] = command;
  const waiting: string[] = [];
  let running: ChildProcess | null = null;

  function next(): void {
    const input = waiting.shift();
    if (program === undefined || input === undefined) return;
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OWN_VARIABLE.test(name)));
    const child = spawn(program, args, {
      env,
      stdio: ['pipe', 'ignore', 'ignore'],
      timeout: runMs,
      killSignal: 'SIGKILL',
    });
    running = child;
    child.on('error', (err) => log.warn({ err, program }, 'cannot run the alert command'));
    child.on('close', (code, signal) => {
      running = null;
      // A negative code: it was not started, which was said.
      if (signal !== null || (code !== null && code > 0))
        log.warn({ program, code, signal }, 'the alert command failed');
      next();
    });
    // It may end without having read what it is given.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  }

  return {
    run(event, alert) {
      if (program === undefined) return;
      if (waiting.length === WAITING_MAX) {
        log.warn({ alert: alert.name, event }, 'alert command skipped: too many alerts are waiting for it');
        return;
      }
      waiting.push(`${JSON.stringify({ event, ...alert })}\n`);
      if (running === null) next();
    },
    close() {
      waiting.length = 0;
      running?.kill('SIGKILL');
    },
  };
}
