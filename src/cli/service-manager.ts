/**
 * Notifies the service manager (sd_notify(3)): that the appliance accepts connections, that it is about to stop, and, if
 * a watchdog is set, that it is alive.
 *
 * Node.js has no Unix datagram sockets, so systemd's own systemd-notify sends the message. It waits until the message
 * was received, so that it is not lost when the short-lived process ends. Without it the appliance runs all the same.
 */
import { spawn } from 'node:child_process';
import type { Logger } from '../log.ts';
import { paced } from '../pace.ts';
import { SECOND_MS } from '../time.ts';

export interface ServiceManager {
  /** @param status shown by `systemctl status` */
  ready(status: string): void;
  stopping(): void;
}

const NOTIFY_TIMEOUT_MS = paced(10 * SECOND_MS);
const MICROSECONDS_PER_MS = 1000;

export function createServiceManager(env: NodeJS.ProcessEnv, log: Logger): ServiceManager {
  if (!env.NOTIFY_SOCKET) return { ready() {}, stopping() {} };
  let hasFailed = false;
  const failed = (error: unknown) => {
    // Once: otherwise it would be logged at every watchdog interval.
    if (!hasFailed)
      log.warn({ err: error }, 'the service manager cannot be told: is systemd-notify installed?');
    hasFailed = true;
  };
  const notify = (...words: string[]) => {
    const child = spawn('systemd-notify', words, { stdio: 'ignore', timeout: NOTIFY_TIMEOUT_MS });
    child.unref();
    child.on('error', failed);
    child.on('exit', (code, signal) => {
      if (code !== 0) failed(new Error(`systemd-notify ended with ${code ?? signal}`));
    });
  };
  let alive: NodeJS.Timeout | undefined;
  return {
    ready(status) {
      notify('READY=1', `STATUS=${status}`);
      const aliveEveryMs = watchdogMs(env) / 2;
      if (aliveEveryMs > 0) alive = setInterval(() => notify('WATCHDOG=1'), aliveEveryMs).unref();
    },
    stopping() {
      // The watchdog is off from here on, and each message would delay the end of the process.
      clearInterval(alive);
      notify('STOPPING=1', 'STATUS=stopping');
    },
  };
}

/** How long the service manager waits for a sign of life (sd_watchdog_enabled(3)); 0: it does not wait for one. */
function watchdogMs({ WATCHDOG_USEC, WATCHDOG_PID }: NodeJS.ProcessEnv): number {
  const isOurs = WATCHDOG_PID === undefined || WATCHDOG_PID === String(process.pid);
  const microseconds = Number(WATCHDOG_USEC);
  return isOurs && microseconds > 0 ? microseconds / MICROSECONDS_PER_MS : 0;
}
