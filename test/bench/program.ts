/** Starts the measured programs and their baselines as processes. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { NODE_FLAGS } from '../../src/packed.ts';

export const BUNDLE = fileURLToPath(new URL('../../dist/main.cjs', import.meta.url));
const BARE_SERVER = fileURLToPath(new URL('bare-server.ts', import.meta.url));

export interface Started {
  readonly url: string;
  stop(): Promise<void>;
  /** Processor time of all threads; null if the system does not report it. */
  cpuMs(): number | null;
  /** Peak resident memory, megabytes; null if the system does not report it. */
  peakMegabytes(): number | null;
  /** Resident memory now, megabytes; null if the system does not report it. */
  megabytes(): number | null;
}

/** Runs a command of the program and returns what it prints. */
export function command(...args: string[]): string {
  return commandOf(BUNDLE, ...args);
}

/** Runs a command of another build. */
export function commandOf(bundle: string, ...args: string[]): string {
  return execFileSync(process.execPath, [bundle, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: Number.POSITIVE_INFINITY,
  });
}

/** Starts the appliance on a data folder, with limits that no measurement reaches. */
export async function startAppliance(
  data: string,
  bundle = BUNDLE,
  settings: Readonly<Record<string, string>> = {},
): Promise<Started> {
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
    if (url !== undefined)
      return {
        url,
        stop: () => stop(child),
        cpuMs: () => cpuMsOf(child),
        peakMegabytes: () => memoryOf(child, 'VmHWM'),
        megabytes: () => memoryOf(child, 'VmRSS'),
      };
    if (child.exitCode !== null) throw new Error(`the appliance ended with ${child.exitCode}: ${text}`);
    await sleep(20);
  }
}

/** Starts one of the servers of bare-server.ts. */
export async function startBare(kind: string, database?: string): Promise<Started> {
  const args = [BARE_SERVER, kind, ...(database === undefined ? [] : [database])];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const port = await found(child, child.stdout, /(\d+)\n/);
  return {
    url: `http://127.0.0.1:${port}`,
    stop: () => stop(child),
    cpuMs: () => cpuMsOf(child),
    peakMegabytes: () => memoryOf(child, 'VmHWM'),
    megabytes: () => memoryOf(child, 'VmRSS'),
  };
}

/** Starts clients in their own process. @param script prints a number once it has begun */
export async function startClients(script: string, ...args: string[]): Promise<{ stop(): Promise<void> }> {
  const child = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  await found(child, child.stdout, /(\d+)\n/);
  return { stop: () => stop(child) };
}

async function found(
  child: ChildProcess,
  output: NodeJS.ReadableStream | null,
  pattern: RegExp,
): Promise<string> {
  let text = '';
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`ended with ${code}: ${text}`)));
    output?.on('data', (chunk: Buffer) => {
      // Discard later output: a full pipe would block the process.
      if (text.length < 100_000) text += chunk.toString();
      const match = pattern.exec(text);
      if (match?.[1] !== undefined) resolve(match[1]);
    });
  });
}

/** https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html: utime and stime, in ticks of 10 ms. */
function cpuMsOf({ pid }: ChildProcess): number | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return null;
  }
}

/** https://man7.org/linux/man-pages/man5/proc_pid_status.5.html: in kibibytes. */
function memoryOf({ pid }: ChildProcess, what: 'VmHWM' | 'VmRSS'): number | null {
  try {
    const [, kib] =
      new RegExp(`^${what}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return (Number(kib) * 1024) / 1e6;
  } catch {
    return null;
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}
