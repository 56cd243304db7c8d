/** Runs the measured program: its commands, the appliance, and what the system says about its process. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { NODE_FLAGS } from '../../src/packed.ts';
import { unlessError } from '../../src/refused.ts';

export const BUNDLE = fileURLToPath(new URL('../../dist/main.cjs', import.meta.url));

export interface RunOptions {
  /** Of another version. */
  readonly bundle?: string;
  readonly settings?: Readonly<Record<string, string>>;
}

export type Started = Awaited<ReturnType<typeof startAppliance>>;

/** Runs a command, and returns what it prints. */
export function command(
  args: readonly string[],
  { bundle = BUNDLE, settings = {} }: RunOptions = {},
): string {
  return execFileSync(process.execPath, [bundle, ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: Number.POSITIVE_INFINITY,
  });
}

/** Starts the appliance on a data folder, with limits that no measurement reaches. */
export async function startAppliance(data: string, { bundle = BUNDLE, settings = {} }: RunOptions = {}) {
  const env = {
    ...process.env,
    WIREWATCH_INGEST_QUIET_MS: '0',
    WIREWATCH_LIMITS_REQUESTS_PER_MINUTE: '1000000000',
    WIREWATCH_LIMITS_DAILY_ROWS: '1000000000000',
    ...settings,
  };
  // Log to a file: reading a pipe would burden the measuring process.
  const logPath = `${data}.log`;
  const log = openSync(logPath, 'w');
  const args = [...NODE_FLAGS, bundle, 'serve', '--data', data, '--port', '0'];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', log] });
  closeSync(log);
  for (;;) {
    const text = readFileSync(logPath, 'utf8');
    const url = /"url":"(http:[^"]+)".*"msg":"listening"/.exec(text)?.[1];
    if (url !== undefined) {
      const end = () => stop(child, 'SIGTERM');
      const of = { cpuMs: () => cpuMsOf(child), peakMegabytes: () => peakMegabytesOf(child) };
      return { url, ...of, stop: end, [Symbol.asyncDispose]: end };
    }
    if (child.exitCode !== null) throw new Error(`the appliance ended with ${child.exitCode}: ${text}`);
    await sleep(20);
  }
}

/** Starts a script of this folder that prints the address of its server. `await using` ends it. */
export async function startServer(script: string, ...args: string[]) {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(child.stdout, 'data');
  return { url: `${line}`.trim(), [Symbol.asyncDispose]: () => stop(child, 'SIGTERM') };
}

/** All threads'; 0 if the system does not report it. https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html: utime and stime, in ticks of 10 ms. */
function cpuMsOf(child: ChildProcess): number {
  const [, ...fields] = /^.*\) (?:\S+ ){11}(\d+) (\d+)/.exec(ofProcess(child, 'stat')) ?? [];
  return fields.reduce((sum, ticks) => sum + Number(ticks) * 10, 0);
}

/** Of resident memory; 0 if the system does not report it. https://man7.org/linux/man-pages/man5/proc_pid_status.5.html: in kibibytes. */
function peakMegabytesOf(child: ChildProcess): number {
  const [, kib = 0] = /^VmHWM:\s+(\d+) kB/m.exec(ofProcess(child, 'status')) ?? [];
  return (Number(kib) * 1024) / 1e6;
}

const ofProcess = ({ pid }: ChildProcess, file: string) =>
  unlessError('', () => readFileSync(`/proc/${pid}/${file}`, 'utf8'));

export async function stop(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null) return;
  const exited = once(child, 'exit');
  child.kill(signal);
  await exited;
}
